#include "comm/gather_parts.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

constexpr int kTag = 890;

/// The parts of ranks [first, first + count), counted round the end, as at most two pieces of the array.
struct Pieces {
    std::span<float> first, second;
};

Pieces pieces_of(std::span<const int64_t> counts, std::span<float> all, int first, int count) {
    const auto ranks = static_cast<int>(counts.size());
    const auto piece = [&](int begin, int end) {
        const auto from = std::accumulate(counts.begin(), counts.begin() + begin, int64_t{0});
        const auto length = std::accumulate(counts.begin() + begin, counts.begin() + end, int64_t{0});
        return all.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(length));
    };
    const int begin = (first % ranks + ranks) % ranks;
    const int end = begin + count;
    return {piece(begin, std::min(end, ranks)), end > ranks ? piece(0, end - ranks) : std::span<float>()};
}

}  // namespace

// After the round of distance d a rank holds the parts of the 2d ranks that end with it. (Bruck et al.: Efficient
// Algorithms for All-to-All Communications in Multiport Message-Passing Systems, 1997.)
void gather_parts(Communicator& comm, std::span<const int64_t> counts, std::span<float> all) {
    const int world = comm.size();
    for (int distance = 1; distance < world; distance *= 2) {
        const int count = std::min(distance, world - distance);
        const int to = (comm.rank() + distance) % world;
        const int from = (comm.rank() - distance + world) % world;
        const Pieces out = pieces_of(counts, all, comm.rank() - count + 1, count);
        const Pieces in = pieces_of(counts, all, from - count + 1, count);
        const auto exchange = [&](std::span<float> own, std::span<float> other) {
            comm.send_recv(own.empty() ? Communicator::kNobody : to, std::as_bytes(own),
                           other.empty() ? Communicator::kNobody : from, std::as_writable_bytes(other), kTag);
        };
        exchange(out.first, in.first);
        exchange(out.second, in.second);
    }
}

int64_t parts_sent(std::span<const int64_t> counts, int rank) {
    const auto world = static_cast<int>(counts.size());
    int64_t sent = 0;
    for (int distance = 1; distance < world; distance *= 2) {
        for (int k = 0; k < std::min(distance, world - distance); ++k) {
            sent += counts[static_cast<std::size_t>((rank - k + world) % world)];
        }
    }
    return sent;
}

}  // namespace lockstep

#include "comm/peer_collectives.hpp"

#include <algorithm>

namespace lockstep {
namespace {

// Below the reducer's tags, above those of callers.
enum Tag : int { kBarrier = 900, kBroadcast, kGather, kReduce };

std::span<const std::byte> as_bytes(const uint64_t& value) {
    return std::as_bytes(std::span(&value, 1));
}
std::span<std::byte> as_writable(uint64_t& value) {
    return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

// Dissemination: after round k a rank has heard, directly or not, of the 2^(k+1) - 1 ranks before it.
void PeerCommunicator::barrier() {
    const std::byte token{1};
    std::byte heard{};
    for (int distance = 1; distance < size(); distance *= 2) {
        const int to = (rank() + distance) % size();
        const int from = (rank() - distance % size() + size()) % size();
        send_recv(to, {&token, 1}, from, {&heard, 1}, kBarrier);
    }
}

// Binomial tree over the distance from the root.
void PeerCommunicator::broadcast(int root, std::vector<std::byte>& bytes) {
    const int distance = (rank() - root + size()) % size();
    int bit = 1;
    for (; bit < size(); bit *= 2) {
        if ((distance & bit) == 0) continue;
        const int from = (rank() - bit + size()) % size();
        uint64_t length = 0;
        receive_from(from, as_writable(length), kBroadcast);
        bytes.resize(length);
        receive_from(from, bytes, kBroadcast);
        break;
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        if (distance + bit >= size()) continue;
        const int to = (rank() + bit) % size();
        const uint64_t length = bytes.size();
        send_to(to, as_bytes(length), kBroadcast);
        send_to(to, bytes, kBroadcast);
    }
}

// A ring: each round passes on what the round before brought.
std::vector<std::vector<std::byte>> PeerCommunicator::all_gather(std::span<const std::byte> bytes) {
    std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(size()));
    all[static_cast<std::size_t>(rank())].assign(bytes.begin(), bytes.end());
    const int to = (rank() + 1) % size();
    const int from = (rank() - 1 + size()) % size();
    for (int round = 1; round < size(); ++round) {
        const auto& out = all[static_cast<std::size_t>((rank() - round + 1 + size()) % size())];
        auto& in = all[static_cast<std::size_t>((rank() - round + size()) % size())];
        const uint64_t out_length = out.size();
        uint64_t in_length = 0;
        send_recv(to, as_bytes(out_length), from, as_writable(in_length), kGather);
        in.resize(in_length);
        send_recv(to, out, from, in, kGather);
    }
    return all;
}

// Ring: partial sums of one segment a rank go round once, then the finished segments do. Its order of additions is the
// ring's.
void PeerCommunicator::all_reduce_native(std::span<float> values) {
    const auto segment = [&](int number) {
        const auto ranks = static_cast<std::size_t>(size());
        const auto s = static_cast<std::size_t>((number % size() + size()) % size());
        const std::size_t begin = values.size() * s / ranks;
        return values.subspan(begin, values.size() * (s + 1) / ranks - begin);
    };
    const int to = (rank() + 1) % size();
    const int from = (rank() - 1 + size()) % size();
    std::vector<float> arrived(values.size() / static_cast<std::size_t>(size()) + 1);
    for (int round = 0; round < size() - 1; ++round) {
        const std::span<float> in = segment(rank() - round - 1);
        const std::span<float> partial(arrived.data(), in.size());
        send_recv(to, std::as_bytes(segment(rank() - round)), from, std::as_writable_bytes(partial), kReduce);
        std::transform(in.begin(), in.end(), partial.begin(), in.begin(), [](float a, float b) { return a + b; });
    }
    for (int round = 0; round < size() - 1; ++round) {
        send_recv(to, std::as_bytes(segment(rank() - round + 1)), from, std::as_writable_bytes(segment(rank() - round)),
                  kReduce);
    }
}

void PeerCommunicator::send_to(int to, std::span<const std::byte> bytes, int tag) {
    send_recv(to, bytes, kNobody, {}, tag);
}

void PeerCommunicator::receive_from(int from, std::span<std::byte> bytes, int tag) {
    send_recv(kNobody, {}, from, bytes, tag);
}

}  // namespace lockstep

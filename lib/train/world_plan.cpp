#include "train/world_plan.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int kMostRanks = 4096;                // of a world: a guard against a slip of the keyboard
constexpr int64_t kMostKib = int64_t{1} << 22;  // as the keys reduce.bucket_kib and small_kib have it

/// The widest worlds first, each in the first round that still has room for it: of the simple rules the one that leaves
/// the fewest ranks idle. The reference is in the first round whatever its width.
void place(std::vector<WorldCast>& casts, int ranks) {
    std::vector<std::size_t> order(casts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin() + 1, order.end(),
                     [&](std::size_t a, std::size_t b) { return casts[a].width() > casts[b].width(); });
    std::vector<int> taken;  // ranks of each round
    for (const std::size_t i : order) {
        WorldCast& cast = casts[i];
        const auto room = std::find_if(taken.begin(), taken.end(), [&](int t) { return t + cast.width() <= ranks; });
        cast.round = static_cast<int>(room - taken.begin());
        if (room == taken.end()) taken.push_back(0);
        int& used = taken[static_cast<std::size_t>(cast.round)];
        cast.first = used;
        used += cast.width();
    }
}

/// Two other numbers of threads than `own`, in turn.
int64_t other_threads(int64_t own, std::size_t turn) {
    if (turn % 2 == 0) return own > 1 ? own / 2 : 2;
    return own > 2 ? own - 1 : 3;
}

/// Two other numbers of streams than `own`, and than what is chosen for 0, in turn.
int64_t other_streams(int64_t own, std::size_t turn) {
    return turn % 2 == 0 ? (own == 1 ? 3 : 1) : (own == 2 ? 3 : 2);
}

/// The gradient in 7 buckets, in one, in 61: its borders fall differently each time.
int64_t other_bucket_kib(int64_t gradient_bytes, std::size_t turn) {
    constexpr int64_t kBuckets[] = {7, 1, 61};
    const int64_t bytes_of_kib = 1024 * kBuckets[turn % 3];
    return std::clamp<int64_t>((gradient_bytes + bytes_of_kib - 1) / bytes_of_kib, 1, kMostKib);
}

/// No bucket counts as small, then every bucket does: messages of other shapes.
int64_t other_small_kib(int64_t gradient_bytes, std::size_t turn) {
    return turn % 2 == 0 ? 0 : std::clamp<int64_t>(gradient_bytes / 1024 + 1, 1, kMostKib);
}

}  // namespace

std::vector<int> parse_worlds(const std::string& text, const std::string& where) {
    std::vector<int> worlds;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        int world = 0;
        const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, world);
        if (error != std::errc() || stop != text.data() + end || world < 1 || world > kMostRanks) {
            fail(ErrorKind::kUsage, "{}: worlds are numbers of ranks from 1 to {}, such as 1,2,4; got {}", where,
                 kMostRanks, text.empty() ? "nothing" : text);
        }
        worlds.push_back(world);
        begin = end + 1;
    }
    return worlds;
}

std::vector<int> worlds_to_verify(int ranks) {
    std::vector<int> worlds(static_cast<std::size_t>(std::max(ranks, 2)));
    std::iota(worlds.begin(), worlds.end(), 1);
    if (ranks == 1) worlds = {1, 1};
    return worlds;
}

std::vector<WorldCast> cast_worlds(std::span<const int> worlds, const Config& config, const WorldMeans& means) {
    std::vector<WorldCast> casts;
    const std::string own_isa = config.device.isa == "auto" ? means.isas.front() : config.device.isa;
    const auto own = std::find(means.isas.begin(), means.isas.end(), own_isa);
    const auto own_number = static_cast<std::size_t>(own == means.isas.end() ? 0 : own - means.isas.begin());
    const bool canonical = config.reduce.algorithm == "canonical";
    for (std::size_t i = 0; i < worlds.size(); ++i) {
        WorldCast& cast = casts.emplace_back();
        cast.world = worlds[i];
        cast.in_process = cast.world > means.ranks;
        cast.threads = config.device.threads > 0 ? config.device.threads : means.threads;
        cast.streams = config.device.streams;
        cast.graphs = config.device.graphs;
        cast.bucket_kib = config.reduce.bucket_kib;
        cast.small_kib = config.reduce.small_kib;
        cast.isa = own_isa;
        // The ranks of a world inside a process share what one rank of the job has.
        const auto shared = [&](int64_t threads) {
            return cast.in_process ? std::max<int64_t>(1, threads / cast.world) : threads;
        };
        if (i > 0) {
            cast.threads = other_threads(cast.threads, i - 1);
            cast.streams = other_streams(cast.streams, i - 1);
            cast.graphs = config.device.graphs && i % 2 == 0;  // every other world without
            cast.isa = means.isas[(own_number + i) % means.isas.size()];
            if (canonical) {
                cast.bucket_kib = other_bucket_kib(means.gradient_bytes, i - 1);
                cast.small_kib = other_small_kib(means.gradient_bytes, i - 1);
            }
        }
        cast.threads = shared(cast.threads);
    }
    if (!casts.empty()) place(casts, means.ranks);
    return casts;
}

}  // namespace lockstep

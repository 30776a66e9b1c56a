#include "train/gpu_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace lockstep {
namespace {

/// Ranks before this one that choose among the same GPUs give its turn.
int device_of(std::span<const RankDevice> ranks, int rank) {
    const RankDevice& own = ranks[static_cast<std::size_t>(rank)];
    if (!own.gpu) return -1;
    const auto before = std::count_if(ranks.begin(), ranks.begin() + rank, [&](const RankDevice& other) {
        return other.gpu && other.host == own.host && other.visible == own.visible;
    });
    return static_cast<int>(before % static_cast<std::ptrdiff_t>(own.visible.size()));
}

/// GPUs, as "host address", and the ranks that would use each.
std::map<std::string, std::vector<int>> users_of(std::span<const RankDevice> ranks) {
    std::map<std::string, std::vector<int>> users;
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
        const RankDevice& one = ranks[static_cast<std::size_t>(rank)];
        const int device = device_of(ranks, rank);
        if (device < 0) continue;
        users[fmt::format("{} of {}", one.visible[static_cast<std::size_t>(device)], one.host)].push_back(rank);
    }
    return users;
}

/// "ranks 0 and 4 share GPU 0000:17:00.0 of node1", for the first one, and how many more there are.
std::string sharing(const std::map<std::string, std::vector<int>>& users) {
    std::string text;
    int more = 0;
    for (const auto& [gpu, ranks] : users) {
        if (ranks.size() < 2) continue;
        if (text.empty()) {
            text = fmt::format("ranks {} share GPU {}", fmt::join(ranks, ", "), gpu);
        } else {
            ++more;
        }
    }
    if (more > 0) text += fmt::format(", and so it is on {} more", more);
    return text;
}

/// "rank 2 computes on a CPU and 3 ranks on GPUs", or "" where all are alike.
std::string mixture(std::span<const RankDevice> ranks) {
    std::vector<int> on_cpu;
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
        if (!ranks[static_cast<std::size_t>(rank)].gpu) on_cpu.push_back(rank);
    }
    const std::size_t on_gpu = ranks.size() - on_cpu.size();
    if (on_cpu.empty() || on_gpu == 0) return "";
    return fmt::format("rank{} {} compute{} on {} and {} rank{} on GPUs", on_cpu.size() == 1 ? "" : "s",
                       fmt::join(on_cpu, ", "), on_cpu.size() == 1 ? "s" : "", on_cpu.size() == 1 ? "a CPU" : "CPUs",
                       on_gpu, on_gpu == 1 ? "" : "s");
}

/// Why NCCL cannot serve, or "".
std::string hindrance(std::span<const RankDevice> ranks, const std::string& shared) {
    const auto first = [&](auto&& condition) {
        return std::find_if(ranks.begin(), ranks.end(), condition) - ranks.begin();
    };
    const auto count = static_cast<std::ptrdiff_t>(ranks.size());
    const auto on_cpu = first([](const RankDevice& one) { return !one.gpu; });
    if (on_cpu < count) return fmt::format("rank {} computes on a CPU", on_cpu);
    if (!shared.empty()) return shared;
    const auto without = first([](const RankDevice& one) { return !one.nccl; });
    if (without < count) return fmt::format("rank {}'s build of Lockstep is without NCCL", without);
    return "";
}

}  // namespace

GpuChoice choose_gpu(std::span<const RankDevice> ranks, int rank, const std::string& transport) {
    GpuChoice choice;
    choice.device = device_of(ranks, rank);
    if (std::none_of(ranks.begin(), ranks.end(), [](const RankDevice& one) { return one.gpu; })) return choice;
    const std::string shared = sharing(users_of(ranks));
    const std::string against = ranks.size() < 2 ? "one rank" : hindrance(ranks, shared);
    if (transport == "nccl" && ranks.size() > 1 && !against.empty()) {
        fail(ErrorKind::kUsage,
             "device.transport = \"nccl\" needs a GPU of its own for each rank, and {}: start as many ranks as there "
             "are "
             "GPUs, or use device.transport = \"staged\"",
             against);
    }
    choice.nccl = transport != "staged" && against.empty();
    if (transport == "auto" && !shared.empty()) {
        choice.warning = fmt::format(
            "{}: they take turns on it, and sums go through host memory instead of NCCL; one rank for each GPU is "
            "faster",
            shared);
    }
    if (const std::string mixed = mixture(ranks); !mixed.empty()) {
        choice.warning += fmt::format(
            "{}{}: every step takes as long as the slowest; device.backend = \"cuda\" lets no rank take a CPU",
            choice.warning.empty() ? "" : "; ", mixed);
    }
    return choice;
}

}  // namespace lockstep

// Limits, memory, the folder of a run, clocks and the network: what lets a job fail late, or makes it slow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "train/doctor_findings.hpp"
#include "train/doctor_print.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// One finding for all ranks that `concerns` is true of, with the text of the first of them.
void add_for(const ClusterFacts& facts, Findings& findings, Severity severity, const char* subject,
             const std::function<bool(const RankFacts&)>& concerns,
             const std::function<std::string(const RankFacts&)>& text, const char* advice) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
        if (concerns(facts.ranks[rank])) ranks.push_back(static_cast<int>(rank));
    }
    if (ranks.empty()) return;
    const RankFacts& first = facts.ranks[static_cast<std::size_t>(ranks.front())];
    findings.push_back({severity, subject, fmt::format("{}: {}", ranks_text(ranks), text(first)), advice, ranks});
}

void examine_limits(const ClusterFacts& facts, Findings& findings) {
    const std::size_t before = findings.size();
    const auto files = static_cast<int64_t>(64 + 4 * facts.ranks.size());  // connections of MPI, data and checkpoints
    add_for(
        facts, findings, Severity::kWarning, "limits",
        [&](const RankFacts& r) { return r.limits.open_files >= 0 && r.limits.open_files < files; },
        [&](const RankFacts& r) {
            return fmt::format("at most {} open files; this job wants about {}", r.limits.open_files, files);
        },
        "raise it with ulimit -n (on every host: /etc/security/limits.conf)");
    add_for(
        facts, findings, Severity::kWarning, "limits",
        [](const RankFacts& r) { return r.limits.address_space_bytes >= 0; },
        [](const RankFacts& r) {
            return fmt::format("address space limited to {}: memory may be refused while some is free",
                               bytes_text(r.limits.address_space_bytes));
        },
        "ulimit -v unlimited");
    add_for(
        facts, findings, Severity::kWarning, "limits", [](const RankFacts& r) { return r.limits.file_bytes >= 0; },
        [](const RankFacts& r) {
            return fmt::format("files end at {}: larger ones cannot be saved", bytes_text(r.limits.file_bytes));
        },
        "ulimit -f unlimited");
    add_for(
        facts, findings, Severity::kWarning, "limits",
        [](const RankFacts& r) { return r.host.infiniband && r.limits.locked_bytes >= 0; },
        [](const RankFacts& r) {
            return fmt::format("locked memory limited to {}: InfiniBand wants to lock its buffers",
                               bytes_text(r.limits.locked_bytes));
        },
        "ulimit -l unlimited (on every host: /etc/security/limits.conf)");
    add_for(
        facts, findings, Severity::kNote, "memory", [](const RankFacts& r) { return r.host.huge_pages == "never"; },
        [](const RankFacts&) { return std::string("huge pages are switched off: large networks run slower"); },
        "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    if (findings.size() != before) return;
    const int64_t open = facts.ranks.front().limits.open_files;
    findings.push_back({Severity::kOk,
                        "limits",
                        fmt::format("open files {}, address space and file size unlimited",
                                    open < 0 ? "unlimited" : std::to_string(open)),
                        "",
                        {}});
}

/// A line for each host with little, else one for the host with least.
void examine_memory(const ClusterFacts& facts, Findings& findings) {
    const std::vector<HostRanks> hosts = ranks_by_host(facts.ranks);
    int64_t least = std::numeric_limits<int64_t>::max();
    Finding tightest;
    for (const HostRanks& host : hosts) {
        const RankFacts& first = facts.ranks[static_cast<std::size_t>(host.ranks.front())];
        int64_t free = first.host.memory_free_bytes;
        if (free == 0) continue;  // the kernel does not say
        std::string text =
            fmt::format("{}: {} of {} free", host.host, bytes_text(free), bytes_text(first.host.memory_bytes));
        if (const int64_t limit = first.cgroup.memory_bytes; limit >= 0) {
            free = std::min(free, std::max<int64_t>(limit - first.cgroup.memory_used_bytes, 0));
            text += fmt::format(", {} of the {} that a control group allows", bytes_text(free), bytes_text(limit));
        }
        const int64_t each = free / static_cast<int64_t>(host.ranks.size());
        const bool little = each < 256 * kMiB;
        const Finding finding{little ? Severity::kWarning : Severity::kOk, "memory",
                              fmt::format("{}, {} a rank", text, bytes_text(each)),
                              little ? "start fewer ranks there, or end what else takes memory" : "", host.ranks};
        if (little) findings.push_back(finding);
        if (each < least) tightest = finding;
        least = std::min(least, each);
    }
    if (tightest.subject.empty() || tightest.severity != Severity::kOk) return;
    if (hosts.size() > 1) tightest.text += fmt::format(", the least of {} hosts", hosts.size());
    findings.push_back(tightest);
}

void examine_folder(const ClusterFacts& facts, Findings& findings) {
    const FolderFacts& folder = facts.folder;
    const std::string where =
        folder.existing == folder.path ? folder.path : fmt::format("{} (in {})", folder.path, folder.existing);
    if (!folder.fault.empty()) {
        findings.push_back({Severity::kFault,
                            "folder",
                            fmt::format("{} cannot be written: {}", where, folder.fault),
                            "choose another --out, or mend its permissions",
                            {0}});
        return;
    }
    const bool little = folder.free_bytes < 256 * kMiB;
    findings.push_back(
        {little ? Severity::kWarning : Severity::kOk,
         "folder",
         fmt::format("{} is free for {}", bytes_text(folder.free_bytes), where),
         little ? "checkpoints may not fit: make room, lower checkpoint.keep, or choose another --out" : "",
         {0}});
    if (facts.ranks.size() == 1) return;
    if (folder.blind.empty()) {
        findings.push_back({Severity::kOk,
                            "shared",
                            fmt::format("every rank sees what rank 0 writes in {}", folder.existing),
                            "",
                            {}});
        return;
    }
    findings.push_back({Severity::kNote, "shared",
                        fmt::format("{} do{} not see what rank 0 writes in {}", ranks_text(folder.blind),
                                    folder.blind.size() == 1 ? "es" : "", folder.existing),
                        "legal for a run directory, which rank 0 alone uses; config and data must be on every host",
                        folder.blind});
}

void examine_clocks(const ClusterFacts& facts, Findings& findings) {
    double worst = 0;
    for (const LinkFacts& link : facts.network.links) {
        const double off = std::max(std::abs(link.clock_offset_s) - link.clock_error_s, 0.0);
        worst = std::max(worst, off);
        if (off < 0.1) continue;
        findings.push_back(
            {off >= 1 ? Severity::kWarning : Severity::kNote,
             "clock",
             fmt::format("the clock of {} is {} {} of rank 0's", link.host, seconds_text(std::abs(link.clock_offset_s)),
                         link.clock_offset_s > 0 ? "ahead" : "behind"),
             "no bit depends on it, but times in logs cannot be compared: run chrony or ntpd",
             {link.rank}});
    }
    if (worst < 0.1 && !facts.network.links.empty()) {
        findings.push_back({Severity::kOk, "clock", "the clocks of all hosts agree to 0.1 s", "", {}});
    }
}

/// A host that is much worse than the others: a bad cable, a wrong interface, a busy machine.
void examine_links(const ClusterFacts& facts, Findings& findings) {
    const std::vector<LinkFacts>& links = facts.network.links;
    if (links.size() < 3) return;
    const auto median = [&](double LinkFacts::*value) {
        std::vector<double> values;
        for (const LinkFacts& link : links) values.push_back(link.*value);
        std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
        return values[values.size() / 2];
    };
    const double latency = median(&LinkFacts::latency_s), rate = median(&LinkFacts::bytes_per_s);
    for (const LinkFacts& link : links) {
        const bool late = link.latency_s > 10 * latency && link.latency_s > 1e-3;
        if (!late && link.bytes_per_s * 4 > rate) continue;
        findings.push_back(
            {Severity::kWarning,
             "network",
             fmt::format("{} answers after {} and takes {}/s, the median of the hosts is {} and {}/s", link.host,
                         seconds_text(link.latency_s), bytes_text(static_cast<int64_t>(link.bytes_per_s)),
                         seconds_text(latency), bytes_text(static_cast<int64_t>(rate))),
             "every step waits for it: look at its cable, its interface (mpirun --mca btl_tcp_if_include) and "
             "what else runs there",
             {link.rank}});
    }
}

}  // namespace

void examine_resources(const ClusterFacts& facts, Findings& findings) {
    examine_limits(facts, findings);
    examine_memory(facts, findings);
    examine_folder(facts, findings);
}

void examine_network(const ClusterFacts& facts, Findings& findings) {
    examine_clocks(facts, findings);
    examine_links(facts, findings);
    const NetworkFacts& network = facts.network;
    if (!network.sums_right) {
        findings.push_back({Severity::kFault,
                            "network",
                            "a sum over all ranks came out wrong",
                            "memory or network damages data: test both before any training",
                            {}});
    }
    if (network.all_reduce.empty()) return;
    const double seconds = network.all_reduce.front().seconds;
    constexpr double kSlow = 2e-3;
    findings.push_back(
        {seconds > kSlow ? Severity::kWarning : Severity::kOk,
         "network",
         fmt::format("the smallest all-reduce takes {}", seconds_text(seconds)),
         seconds > kSlow
             ? "each step waits at least that long: give every rank a core of its own, and look at the network"
             : "",
         {}});
}

}  // namespace lockstep

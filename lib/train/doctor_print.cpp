#include "train/doctor_print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

std::string heading(const ClusterFacts& facts) {
    const ProgramFacts& program = facts.ranks.front().program;
    return fmt::format("lockstep {} ({}), {} {}, {}\n", program.version, program.arithmetic, program.compiler,
                       program.build_type, program.mpi);
}

std::string host_lines(const ClusterFacts& facts) {
    std::string text;
    for (const HostRanks& host : ranks_by_host(facts.ranks)) {
        const HostFacts& h = facts.ranks[static_cast<std::size_t>(host.ranks.front())].host;
        text += fmt::format("{}: {}, {}, {}, {}, {}\n", host.host, ranks_text(host.ranks), h.cpu,
                            count_text(static_cast<std::size_t>(h.cpus), "core"), bytes_text(h.memory_bytes), h.kernel);
    }
    return text;
}

std::string rank_lines(const ClusterFacts& facts) {
    std::size_t host_width = 4, core_width = 5;
    for (const RankFacts& rank : facts.ranks) {
        host_width = std::max(host_width, rank.host.name.size());
        core_width = std::max(core_width, cpu_list_text(rank.device.cpus).size());
    }
    std::string text = fmt::format("{:>5}  {:<{}}  {:<{}}  {:>7}  {:<8} {}\n", "rank", "host", host_width, "cores",
                                   core_width, "threads", "isa", "available");
    for (std::size_t r = 0; r < facts.ranks.size(); ++r) {
        const RankFacts& rank = facts.ranks[r];
        text += fmt::format("{:>5}  {:<{}}  {:<{}}  {:>7}  {:<8} {}\n", r, rank.host.name, host_width,
                            cpu_list_text(rank.device.cpus), core_width, rank.device.threads,
                            rank.device.isa.empty() ? "none" : rank.device.isa, fmt::join(rank.device.isas, ", "));
    }
    return text;
}

std::string network_lines(const NetworkFacts& network) {
    std::string text;
    for (const LinkFacts& link : network.links) {
        text += fmt::format("rank 0 to {}: {} one way, {}/s\n", link.host, seconds_text(link.latency_s),
                            bytes_text(static_cast<int64_t>(link.bytes_per_s)));
    }
    if (network.all_reduce.empty()) return text;
    text += "all-reduce of all ranks:";
    for (const ReduceTime& time : network.all_reduce) {
        text += fmt::format("{} {} in {}", &time == &network.all_reduce.front() ? "" : ",", bytes_text(time.bytes),
                            seconds_text(time.seconds));
    }
    return text + "\n";
}

int count_of(const Findings& findings, Severity severity) {
    return static_cast<int>(
        std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.severity == severity; }));
}

}  // namespace

std::string report_text(const ClusterFacts& facts, const Findings& findings, bool color) {
    std::string text = heading(facts) + host_lines(facts) + "\n" + rank_lines(facts) + "\n";
    const std::string network = network_lines(facts.network);
    if (!network.empty()) text += network + "\n";
    for (const Finding& finding : findings) {
        const char* paint = finding.severity == Severity::kFault     ? "\x1b[1;31m"
                            : finding.severity == Severity::kWarning ? "\x1b[33m"
                                                                     : "";
        const bool paints = color && *paint != '\0';
        text += fmt::format("{}{:<8}{} {}: {}\n", paints ? paint : "", severity_name(finding.severity),
                            paints ? "\x1b[0m" : "", finding.subject, finding.text);
        if (!finding.advice.empty()) text += fmt::format("         -> {}\n", finding.advice);
    }
    const auto faults = count_of(findings, Severity::kFault), warnings = count_of(findings, Severity::kWarning);
    return text + fmt::format("{}, {}\n", count_text(static_cast<std::size_t>(faults), "fault"),
                              count_text(static_cast<std::size_t>(warnings), "warning"));
}

std::string report_json(const ClusterFacts& facts, const Findings& findings) {
    const nlohmann::json json = {{"world", facts.ranks.size()},
                                 {"ranks", facts.ranks},
                                 {"network", facts.network},
                                 {"folder", facts.folder},
                                 {"findings", findings},
                                 {"faults", count_of(findings, Severity::kFault)},
                                 {"warnings", count_of(findings, Severity::kWarning)}};
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string seconds_text(double seconds) {
    if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
    if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
    return fmt::format("{:.3g} us", seconds * 1e6);
}

}  // namespace lockstep

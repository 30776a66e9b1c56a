// Whether the ranks and threads of a job have cores to run on, and which instruction sets those have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "train/doctor_findings.hpp"

namespace lockstep {
namespace {

const RankFacts& facts_of(const ClusterFacts& facts, int rank) {
    return facts.ranks[static_cast<std::size_t>(rank)];
}

/// Whose doing a narrow affinity mask is, and how to widen it to `cores` for each rank.
std::string widen(const RankFacts& rank, int cores) {
    const std::string& launcher = rank.launch.launcher;
    if (launcher == "mpirun") {
        const auto policy = rank.environment.find("OMPI_MCA_hwloc_base_binding_policy");
        if (policy != rank.environment.end() && policy->second == "none") {
            return "mpirun binds nothing here: look for a taskset, a container or a control group around it";
        }
        return fmt::format(
            "mpirun binds each rank to one core where there are at most 2 ranks: give it --bind-to none, "
            "or --map-by slot:PE={} --bind-to core",
            cores);
    }
    if (launcher.starts_with("srun")) return fmt::format("give srun --cpus-per-task={}", cores);
    return "a taskset, a container or a control group around it decides: widen that";
}

/// The cores of one host and the threads that want them.
struct HostCores {
    std::set<int> used;      // in any rank's mask
    int allowed = 0;         // that the host, or the control group of the job, has
    int threads = 0;         // of all ranks here
    double quota = 0;        // 0: none
    std::vector<int> tight;  // ranks with more threads than cores
};

HostCores cores_of(const ClusterFacts& facts, const HostRanks& host) {
    HostCores cores;
    for (const int rank : host.ranks) {
        const RankFacts& f = facts_of(facts, rank);
        cores.used.insert(f.device.cpus.begin(), f.device.cpus.end());
        const auto set = static_cast<int>(f.cgroup.cpuset.size());
        cores.allowed = std::max(cores.allowed, set > 0 ? set : f.host.cpus);
        cores.threads += f.device.threads;
        cores.quota = std::max(cores.quota, f.cgroup.cpus);
        if (f.device.threads > static_cast<int>(f.device.cpus.size())) cores.tight.push_back(rank);
    }
    return cores;
}

/// Findings in which "@ranks" and "@hosts" stand for where they were made: hosts with the same trouble share a line.
class HostFindings {
  public:
    void add(const HostRanks& host, Severity severity, const char* subject, const std::string& text,
             const std::string& advice) {
        auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& p) {
            return p.finding.severity == severity && p.finding.subject == subject && p.finding.text == text &&
                   p.finding.advice == advice;
        });
        if (place == places_.end())
            place = places_.insert(places_.end(), Place{{severity, subject, text, advice, {}}, {}});
        place->hosts.push_back(host.host);
        place->finding.ranks.insert(place->finding.ranks.end(), host.ranks.begin(), host.ranks.end());
    }
    void append_to(Findings& findings) {
        for (Place& place : places_) {
            std::sort(place.finding.ranks.begin(), place.finding.ranks.end());
            replace(place.finding.text, "@ranks", ranks_text(place.finding.ranks));
            replace(place.finding.text, "@hosts", hosts_text(place.hosts));
            findings.push_back(std::move(place.finding));
        }
    }

  private:
    struct Place {
        Finding finding;
        std::vector<std::string> hosts;
    };
    static void replace(std::string& text, std::string_view token, const std::string& by) {
        if (const std::size_t at = text.find(token); at != std::string::npos) text.replace(at, token.size(), by);
    }
    static std::string hosts_text(const std::vector<std::string>& hosts) {
        constexpr std::size_t kNamed = 8;
        std::string text;
        for (std::size_t i = 0; i < std::min(hosts.size(), kNamed); ++i) text += (i > 0 ? ", " : "") + hosts[i];
        return hosts.size() > kNamed ? fmt::format("{} and {} more hosts", text, hosts.size() - kNamed) : text;
    }
    std::vector<Place> places_;
};

void examine_host(const ClusterFacts& facts, const HostRanks& host, HostFindings& findings) {
    const HostCores cores = cores_of(facts, host);
    const RankFacts& first = facts_of(facts, host.ranks.front());
    const auto used = static_cast<int>(cores.used.size());
    const auto ranks = static_cast<int>(host.ranks.size());
    const std::string ranks_here = count_text(host.ranks.size(), "rank");
    const std::string cores_here = count_text(cores.used.size(), "core");
    const std::string threads_here = count_text(static_cast<std::size_t>(cores.threads), "thread");
    const int share = std::max(1, cores.allowed / ranks);
    bool well = true;
    const auto add = [&](Severity severity, const char* subject, const std::string& text, const std::string& advice) {
        well = well && severity < Severity::kWarning;
        findings.add(host, severity, subject, text, advice);
    };
    if (!cores.tight.empty()) {
        const DeviceFacts& device = facts_of(facts, cores.tight.front()).device;
        const bool bound = static_cast<int>(device.cpus.size()) < cores.allowed;
        well = false;
        findings.add({host.host, cores.tight}, Severity::kWarning, "binding",
                     fmt::format("@ranks on @hosts: {} a rank, but {}",
                                 count_text(static_cast<std::size_t>(device.threads), "thread"),
                                 count_text(device.cpus.size(), "core")),
                     bound ? widen(first, std::min(device.threads, share)) + "; or leave device.threads at 0"
                           : fmt::format("set device.threads to at most {}, or leave it at 0", device.cpus.size()));
    } else if (used < cores.allowed && cores.threads < cores.allowed) {
        const bool chosen = first.launch.launcher == "alone" || first.launch.launcher == "singleton";
        add(chosen ? Severity::kNote : Severity::kWarning, "binding",
            fmt::format("@ranks on @hosts may use {} of {} ({})", used,
                        count_text(static_cast<std::size_t>(cores.allowed), "core"),
                        cpu_list_text({cores.used.begin(), cores.used.end()})),
            widen(first, share));
    }
    if (ranks > used) {
        add(Severity::kWarning, "oversubscribed",
            fmt::format("{} share {} on @hosts: they wait for each other's time slices", ranks_here, cores_here),
            fmt::format("start at most {} there: fewer ranks give the same bits",
                        count_text(cores.used.size(), "rank")));
    } else if (cores.threads > used && cores.tight.empty()) {
        add(Severity::kWarning, "threads",
            fmt::format("{} of {} share {} on @hosts", threads_here, ranks_here, cores_here),
            "leave device.threads at 0: each rank then takes its fair share");
    }
    if (cores.quota > 0 && cores.threads > std::ceil(cores.quota)) {
        add(Severity::kWarning, "quota",
            fmt::format("a control group allows the time of {:g} cores, but {} want it, on @hosts", cores.quota,
                        threads_here),
            fmt::format("set device.threads to {}, or ask for more",
                        std::max(1, static_cast<int>(cores.quota) / ranks)));
    }
    if (well) {
        findings.add(host, Severity::kOk, "cores",
                     fmt::format("@hosts: {}, {}, {}", ranks_here, threads_here, cores_here), "");
    }
}

void examine_instructions(const ClusterFacts& facts, Findings& findings) {
    std::map<std::string, std::vector<int>> lacking;  // by what is wrong
    std::map<std::string, std::vector<int>> scalar;   // by what would be there
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
        const DeviceFacts& device = facts.ranks[rank].device;
        if (!device.isa_fault.empty()) {
            lacking[device.isa_fault].push_back(static_cast<int>(rank));
        } else if (device.isa == "scalar" && !device.isas.empty() && device.isas.front() != "scalar") {
            scalar[device.isas.front()].push_back(static_cast<int>(rank));
        }
    }
    for (const auto& [fault, ranks] : lacking) {
        findings.push_back({Severity::kFault, "isa", fmt::format("{}: {}", ranks_text(ranks), fault),
                            "leave device.isa at \"auto\": the bits are the same with every instruction set", ranks});
    }
    for (const auto& [better, ranks] : scalar) {
        findings.push_back({Severity::kWarning, "isa",
                            fmt::format("scalar code on {}, whose CPU has {}", ranks_text(ranks), better),
                            "set device.isa to \"auto\" but for tests: the same bits, many times faster", ranks});
    }
}

}  // namespace

void examine_cores(const ClusterFacts& facts, Findings& findings) {
    HostFindings by_host;
    for (const HostRanks& host : ranks_by_host(facts.ranks)) examine_host(facts, host, by_host);
    by_host.append_to(findings);
    examine_instructions(facts, findings);
}

}  // namespace lockstep

// How a job was started, and whether its ranks and threads have cores to run on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

void examine_host(const ClusterFacts& facts, const HostRanks& host, Findings& findings) {
    const HostCores cores = cores_of(facts, host);
    const RankFacts& first = facts_of(facts, host.ranks.front());
    const auto used = static_cast<int>(cores.used.size());
    const auto ranks = static_cast<int>(host.ranks.size());
    const int share = std::max(1, cores.allowed / ranks);
    bool well = true;
    const auto add = [&](Severity severity, const char* subject, const std::string& text, const std::string& advice,
                         const std::vector<int>& concerned) {
        well = well && severity < Severity::kWarning;
        findings.push_back({severity, subject, text, advice, concerned});
    };
    if (!cores.tight.empty()) {
        const DeviceFacts& device = facts_of(facts, cores.tight.front()).device;
        const bool bound = static_cast<int>(device.cpus.size()) < cores.allowed;
        add(Severity::kWarning, "binding",
            fmt::format("{} on {}: {} a rank, but {} ({})", ranks_text(cores.tight), host.host,
                        count_text(static_cast<std::size_t>(device.threads), "thread"),
                        count_text(device.cpus.size(), "core"), cpu_list_text(device.cpus)),
            bound ? widen(first, std::min(device.threads, share)) + "; or leave device.threads at 0"
                  : fmt::format("set device.threads to at most {}, or leave it at 0", device.cpus.size()),
            cores.tight);
    } else if (used < cores.allowed && cores.threads < cores.allowed) {
        const bool chosen = first.launch.launcher == "alone" || first.launch.launcher == "singleton";
        add(chosen ? Severity::kNote : Severity::kWarning, "binding",
            fmt::format("{} on {} may use {} of {} ({})", ranks_text(host.ranks), host.host, used,
                        count_text(static_cast<std::size_t>(cores.allowed), "core"),
                        cpu_list_text({cores.used.begin(), cores.used.end()})),
            widen(first, share), host.ranks);
    }
    if (ranks > used) {
        add(Severity::kWarning, "oversubscribed",
            fmt::format("{} share {} on {}: they wait for each other's time slices",
                        count_text(host.ranks.size(), "rank"), count_text(cores.used.size(), "core"), host.host),
            fmt::format("start at most {} here: fewer ranks give the same bits", count_text(cores.used.size(), "rank")),
            host.ranks);
    } else if (cores.threads > used && cores.tight.empty()) {
        add(Severity::kWarning, "threads",
            fmt::format("{} of {} share {} on {}", count_text(static_cast<std::size_t>(cores.threads), "thread"),
                        count_text(host.ranks.size(), "rank"), count_text(cores.used.size(), "core"), host.host),
            "leave device.threads at 0: each rank then takes its fair share", host.ranks);
    }
    if (cores.quota > 0 && cores.threads > std::ceil(cores.quota)) {
        add(Severity::kWarning, "quota",
            fmt::format("a control group on {} allows the time of {:g} cores; {} want it", host.host, cores.quota,
                        count_text(static_cast<std::size_t>(cores.threads), "thread")),
            fmt::format("set device.threads to {}, or ask for more",
                        std::max(1, static_cast<int>(cores.quota) / ranks)),
            host.ranks);
    }
    if (well) {
        findings.push_back({Severity::kOk, "cores",
                            fmt::format("{}: {}, {}, {}", host.host, count_text(host.ranks.size(), "rank"),
                                        count_text(static_cast<std::size_t>(cores.threads), "thread"),
                                        count_text(cores.used.size(), "core")),
                            "", host.ranks});
    }
}

void examine_instructions(const ClusterFacts& facts, Findings& findings) {
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
        const DeviceFacts& device = facts.ranks[rank].device;
        const int number = static_cast<int>(rank);
        const std::string who = fmt::format("{} on {}", ranks_text({number}), facts.ranks[rank].host.name);
        if (!device.isa_fault.empty()) {
            findings.push_back({Severity::kFault,
                                "isa",
                                who + ": " + device.isa_fault,
                                "leave device.isa at \"auto\": the bits are the same with every instruction set",
                                {number}});
        } else if (!device.isas.empty() && device.isa == "scalar" && device.isas.front() != "scalar") {
            findings.push_back({Severity::kWarning,
                                "isa",
                                fmt::format("{} computes with scalar code, its CPU has {}", who, device.isas.front()),
                                "set device.isa to \"auto\" but for tests: the same bits, many times faster",
                                {number}});
        }
    }
}

void examine_gpus(const ClusterFacts& facts, Findings& findings) {
    int gpus = 0;
    std::string where;
    for (const HostRanks& host : ranks_by_host(facts.ranks)) {
        const int here = facts_of(facts, host.ranks.front()).host.gpus;
        gpus += here;
        if (here > 0) where += fmt::format("{}{} on {}", where.empty() ? "" : ", ", here, host.host);
    }
    findings.push_back({gpus > 0 ? Severity::kNote : Severity::kOk,
                        "gpu",
                        gpus > 0 ? fmt::format("this build has no CUDA backend: the GPUs ({}) stay idle", where)
                                 : "this build has no CUDA backend, and no host has an NVIDIA GPU",
                        "",
                        {}});
}

}  // namespace

void examine_launch(const ClusterFacts& facts, Findings& findings) {
    const RankFacts& first = facts.ranks.front();
    const LaunchFacts& launch = first.launch;
    const std::size_t world = facts.ranks.size();
    if (launch.launcher == "singleton") {
        findings.push_back(
            {Severity::kFault,
             "launch",
             fmt::format("srun started {} processes that do not know of each other (SLURM_STEP_NUM_TASKS, but no "
                         "PMIX_RANK): each would train the whole job alone",
                         launch.started),
             "start them with srun --mpi=pmix (srun --mpi=list says whether Slurm has it), or with mpirun inside the "
             "job; if they are meant to be alone: --allow-singleton",
             {}});
        return;
    }
    if (world == 1 && launch.started > 1) {
        findings.push_back(
            {Severity::kFault,
             "launch",
             fmt::format("{} started {} processes, but each is alone: launcher and MPI library ({}) do not fit",
                         launch.launcher, launch.started, first.program.mpi),
             "use the mpirun of the MPI library that Lockstep was built with, or srun --mpi=pmix",
             {}});
        return;
    }
    const std::vector<HostRanks> hosts = ranks_by_host(facts.ranks);
    const auto [fewest, most] = std::minmax_element(
        hosts.begin(), hosts.end(), [](const auto& a, const auto& b) { return a.ranks.size() < b.ranks.size(); });
    std::string text =
        world == 1 ? fmt::format("1 rank ({})", launch.launcher)
                   : fmt::format("{} ranks on {} by {}", world, count_text(hosts.size(), "host"), launch.launcher);
    if (fewest->ranks.size() != most->ranks.size()) {
        text += fmt::format(", {} on {} but {} on {}: legal, the fullest host sets the pace", most->ranks.size(),
                            most->host, fewest->ranks.size(), fewest->host);
        findings.push_back({Severity::kNote, "launch", text, "mpirun --map-by node or ppr:N:node deals evenly", {}});
    } else {
        findings.push_back({Severity::kOk, "launch", text, "", {}});
    }
    const std::string& running = first.program.mpi;
    const std::string& built = first.program.mpi_headers;
    const auto major = [](const std::string& name) { return name.substr(0, name.find('.')); };
    if (major(running) != major(built)) {
        findings.push_back({Severity::kWarning,
                            "mpi",
                            fmt::format("built with {}, runs with {}", built, running),
                            "build Lockstep with the MPI that it runs with",
                            {}});
    }
}

void examine_cores(const ClusterFacts& facts, Findings& findings) {
    for (const HostRanks& host : ranks_by_host(facts.ranks)) examine_host(facts, host, findings);
    examine_instructions(facts, findings);
    examine_gpus(facts, findings);
}

}  // namespace lockstep

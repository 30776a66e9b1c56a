// How a job was started: whether its processes found each other, and are dealt evenly to the hosts.
#include <fmt/format.h>

#include <algorithm>

#include "train/doctor_findings.hpp"

namespace lockstep {

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

}  // namespace lockstep

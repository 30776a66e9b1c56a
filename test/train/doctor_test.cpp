// `env`: a job in order is told so; what ends or slows a job is found, the worst first; and a whole job examined.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "comm/thread_communicator.hpp"
#include "io/temp_folder.hpp"
#include "train/doctor_facts_of.hpp"
#include "train/doctor_print.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a job in order has neither faults nor warnings nor notes") {
    for (const Finding& f : examine(healthy())) {
        INFO(f.subject << ": " << f.text);
        CHECK(f.severity == Severity::kOk);
    }
}

TEST_CASE("findings come the worst first") {
    ClusterFacts cluster = healthy();
    cluster.ranks[3].program.version = "0.2.0";
    cluster.ranks[1].limits.open_files = 10;
    cluster.ranks[2].host.kernel = "Linux 5.10";
    const Findings findings = examine(cluster);
    CHECK(std::is_sorted(findings.begin(), findings.end(),
                         [](const Finding& a, const Finding& b) { return a.severity > b.severity; }));
    CHECK(findings.front().subject == "version");
}

TEST_CASE("how a job was started follows from what its launcher left") {
    const auto launcher = [](const Environment& environment) { return launch_of(environment).launcher; };
    CHECK(launcher({}) == "alone");
    CHECK(launcher({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_NUM_TASKS", "1"}}) == "alone");
    CHECK(launcher({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_NUM_TASKS", "4"}}) == "singleton");
    CHECK(launcher({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"PMIX_RANK", "1"}}) == "srun pmix");
    CHECK(launcher({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_RANK", "1"}}) == "srun pmi2");
    CHECK(launcher({{"OMPI_COMM_WORLD_SIZE", "2"},
                    {"OMPI_MCA_orte_hnp_uri", "x"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_STEP_NUM_TASKS", "4"}}) == "mpirun");
    CHECK(launcher({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}) == "other");
    CHECK(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}).started == 3);
}

TEST_CASE("processes that would each train alone are a fault, with the way to start them") {
    ClusterFacts cluster = healthy(1);
    cluster.ranks[0].launch = {"singleton", "7", 4};
    cluster.ranks[0].device.cpus = cluster.ranks[0].cgroup.cpuset;
    check_only(cluster, Severity::kFault, "launch", "srun started 4 processes", {});
    CHECK_THAT(bad(cluster)[0].advice, Catch::Contains("srun --mpi=pmix") && Catch::Contains("--allow-singleton"));
    cluster.ranks[0].launch = {"other", "", 3};  // another MPI's mpiexec
    check_only(cluster, Severity::kFault, "launch", "other started 3 processes, but each is alone", {});
    cluster.ranks[0].launch = {"mpirun", "", 1};
    CHECK(bad(cluster).empty());
}

TEST_CASE("limits that end a job late are warned of") {
    ClusterFacts cluster = healthy();
    cluster.ranks[1].limits.open_files = cluster.ranks[2].limits.open_files = 64;
    check_only(cluster, Severity::kWarning, "limits", "ranks 1-2: at most 64 open files", {1, 2});
    cluster = healthy();
    cluster.ranks[3].limits.file_bytes = 1 << 20;
    check_only(cluster, Severity::kWarning, "limits", "files end at 1 MiB", {3});
    cluster = healthy();
    for (RankFacts& rank : cluster.ranks) rank.limits.locked_bytes = 65536;
    CHECK(bad(cluster).empty());  // without InfiniBand nobody locks memory
    cluster.ranks[0].host.infiniband = true;
    check_only(cluster, Severity::kWarning, "limits", "locked memory limited to 64 KiB", {0});
    cluster = healthy(2);
    for (RankFacts& rank : cluster.ranks) {
        rank.cgroup.memory_bytes = int64_t{1} << 30;
        rank.cgroup.memory_used_bytes = 700 << 20;
    }
    check_only(cluster, Severity::kWarning, "memory",
               "324 MiB of the 1 GiB that a control group allows, 162 MiB a rank", {0, 1});
}

TEST_CASE("clocks apart, a slow host and a wrong sum are told") {
    ClusterFacts cluster = healthy();
    cluster.network.links[0].clock_offset_s = -3;
    check_only(cluster, Severity::kWarning, "clock", "the clock of b is 3 s behind of rank 0's", {2});
    cluster.network.links[0].clock_error_s = 4;  // within what could be measured
    CHECK(bad(cluster).empty());
    cluster = healthy();
    cluster.network.links = {{2, "b", 20e-6, 1e9, 0, 0}, {3, "c", 20e-6, 1e9, 0, 0}, {4, "d", 22e-6, 1e8, 0, 0}};
    check_only(cluster, Severity::kWarning, "network", "d answers after 22 us", {4});
    cluster = healthy();
    cluster.network.sums_right = false;
    check_only(cluster, Severity::kFault, "network", "wrong", {});
    cluster = healthy();
    cluster.network.all_reduce[0].seconds = 8e-3;
    check_only(cluster, Severity::kWarning, "network", "the smallest all-reduce takes 8 ms", {});
}

TEST_CASE("facts come through JSON unchanged") {
    const RankFacts rank = healthy().ranks[1];
    const nlohmann::json json = rank;
    CHECK(nlohmann::json(json.get<RankFacts>()) == json);
    const auto report = nlohmann::json::parse(report_json(healthy(), examine(healthy())));
    CHECK(report.at("world") == 4);
    CHECK(report.at("faults") == 0);
    CHECK(report.at("ranks")[1] == json);
}

TEST_CASE("a job of three ranks is examined as a whole, and nothing is left in the folder") {
    const TempFolder folder;
    DoctorOptions options;
    options.out = folder.path() + "/not/yet/there";
    ClusterFacts facts;
    run_thread_world(3, [&](Communicator& comm) {
        ClusterFacts seen = examine_job(comm, options);
        if (comm.rank() == 0) facts = std::move(seen);
    });
    REQUIRE(facts.ranks.size() == 3);
    CHECK(facts.ranks[2].program.version == facts.ranks[0].program.version);
    CHECK(facts.network.sums_right);
    CHECK(facts.network.all_reduce.size() >= 2);
    CHECK(facts.network.links.empty());  // one host
    CHECK(facts.folder.existing == folder.path());
    CHECK(facts.folder.fault.empty());
    CHECK(facts.folder.blind.empty());
    CHECK(std::filesystem::is_empty(folder.path()));
    for (const Finding& f : examine(facts)) {
        INFO(f.text);
        CHECK(f.severity != Severity::kFault);
    }
}

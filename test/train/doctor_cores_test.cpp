// What the doctor says of cores, threads and instruction sets.
#include <catch2/catch.hpp>

#include "train/doctor_facts_of.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("more threads than cores are named with the way to more cores") {
    ClusterFacts cluster = healthy(2);
    for (RankFacts& rank : cluster.ranks) {  // as mpirun -np 2 binds
        rank.device.cpus = {rank.local_rank};
        rank.device.threads = 4;
    }
    check_only(cluster, Severity::kWarning, "binding", "ranks 0-1 on a: 4 threads a rank, but 1 core", {0, 1});
    CHECK_THAT(bad(cluster)[0].advice, Catch::Contains("--bind-to none") && Catch::Contains("--map-by slot:PE=4"));

    for (RankFacts& rank : cluster.ranks) rank.environment["OMPI_MCA_hwloc_base_binding_policy"] = "none";
    CHECK_THAT(bad(cluster)[0].advice, Catch::Contains("binds nothing") && !Catch::Contains("--bind-to"));
    for (RankFacts& rank : cluster.ranks) rank.launch.launcher = "srun pmix";
    CHECK_THAT(bad(cluster)[0].advice, Catch::Contains("--cpus-per-task=4"));
}

TEST_CASE("cores that a binding leaves unused are named") {
    ClusterFacts cluster = healthy(2);
    for (RankFacts& rank : cluster.ranks) {
        rank.device.cpus = {rank.local_rank};
        rank.device.threads = rank.device.fair_threads = 1;
    }
    check_only(cluster, Severity::kWarning, "binding", "may use 2 of 8 cores (0-1)", {0, 1});
    for (RankFacts& rank : cluster.ranks) rank.cgroup.cpuset = {0, 1};  // the job has no more
    CHECK(bad(cluster).empty());
}

TEST_CASE("more ranks or threads than cores, and more threads than a control group gives time, are warned of") {
    ClusterFacts cluster = healthy(2);
    for (RankFacts& rank : cluster.ranks) {
        rank.device.cpus = rank.cgroup.cpuset = {5};
        rank.device.threads = 1;
    }
    check_only(cluster, Severity::kWarning, "oversubscribed", "2 ranks share 1 core", {0, 1});
    cluster = healthy(2);
    for (RankFacts& rank : cluster.ranks) {
        rank.device.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
        rank.device.threads = 8;
    }
    check_only(cluster, Severity::kWarning, "threads", "16 threads of 2 ranks share 8 cores", {0, 1});
    cluster = healthy(2);
    for (RankFacts& rank : cluster.ranks) rank.cgroup.cpus = 2.5;
    check_only(cluster, Severity::kWarning, "quota", "the time of 2.5 cores, but 8 threads want it, on a", {0, 1});
}

TEST_CASE("hosts with the same trouble share a finding") {
    ClusterFacts cluster = healthy();
    for (RankFacts& rank : cluster.ranks) rank.device.threads = 5;
    check_only(cluster, Severity::kWarning, "binding", "ranks 0-3 on a, b: 5 threads a rank, but 4 cores",
               {0, 1, 2, 3});
    cluster.ranks[2].device.threads = cluster.ranks[3].device.threads = 6;
    CHECK(bad(cluster).size() == 2);
}

TEST_CASE("an instruction set that a rank lacks is a fault, scalar code by choice a warning") {
    ClusterFacts cluster = healthy();
    cluster.ranks[1].device.isa = "";
    cluster.ranks[1].device.isa_fault = "device.isa = \"neon\": this CPU does not have it";
    const Findings findings = examine(cluster);
    REQUIRE(find(findings, "isa", Severity::kFault) != nullptr);
    CHECK(find(findings, "isa", Severity::kFault)->text == "rank 1: device.isa = \"neon\": this CPU does not have it");
    cluster = healthy();
    for (RankFacts& rank : cluster.ranks) rank.device.isa = "scalar";
    CHECK(find(examine(cluster), "isa", Severity::kWarning) != nullptr);
}

// What the doctor says where ranks differ in program, settings, data or what they see of a folder.
#include <catch2/catch.hpp>

#include "io/temp_folder.hpp"
#include "train/doctor_facts_of.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("another version or arithmetic on a rank is a fault, another binary, CPU or locale is not") {
    ClusterFacts cluster = healthy();
    cluster.ranks[3].program.version = "0.2.0";
    check_only(cluster, Severity::kFault, "version", "0.1.0 on ranks 0-2, 0.2.0 on rank 3", {3});
    cluster = healthy();
    cluster.ranks[0].program.arithmetic = "arithmetic 2";
    check_only(cluster, Severity::kFault, "arithmetic", "arithmetic 2 on rank 0, arithmetic 1 on ranks 1-3", {1, 2, 3});
    cluster = healthy();
    cluster.ranks[2].program.mpi = "Open MPI 5.0.1";
    check_only(cluster, Severity::kWarning, "mpi", "Open MPI 5.0.1 on rank 2", {2});

    cluster = healthy();
    RankFacts& other = cluster.ranks[1];
    other.program.binary = "1234";
    other.program.libraries = {"libm.so.7"};
    other.host.cpu = "Slow CPU";
    other.host.kernel = "Linux 5.10";
    other.device.isa = "avx2";
    other.environment["LC_ALL"] = "tr_TR.UTF-8";
    other.environment["OMP_NUM_THREADS"] = "7";
    CHECK(bad(cluster).empty());
    const Findings findings = examine(cluster);
    for (const char* subject : {"binary", "libraries", "cpu", "kernel", "isa", "environment"}) {
        INFO(subject);
        CHECK(find(findings, subject, Severity::kNote) != nullptr);
    }
    CHECK(find(findings, "equal", Severity::kOk)->text ==
          "the same on all ranks: version, numeric fingerprint, MPI library, compiler");
}

TEST_CASE("settings that can change a bit must be equal, others may differ") {
    ClusterFacts cluster = healthy();
    cluster.config_given = true;
    Config config;
    config.optimizer.lr = 0.5;
    config.device.isa = "avx2";
    config.log.every = 3;
    cluster.ranks[2].config.json = config_to_json(config);
    cluster.ranks[2].config.origins = {{"optimizer.lr", "LOCKSTEP_OPTIMIZER_LR"}};
    check_only(cluster, Severity::kFault, "settings",
               "optimizer.lr = 0.5 on rank 2 on b (from LOCKSTEP_OPTIMIZER_LR), 0.05 on rank 0 (from default)", {2});
    const Findings findings = examine(cluster);
    CHECK(std::count_if(findings.begin(), findings.end(), [](const Finding& f) {
              return f.subject == "settings" && f.severity == Severity::kNote;
          }) == 2);

    cluster = healthy();  // without a config the variables are all there is
    cluster.ranks[2].environment["LOCKSTEP_OPTIMIZER_LR"] = "0.5";
    cluster.ranks[3].environment["LOCKSTEP_DEVICE_THREADS"] = "2";
    check_only(cluster, Severity::kWarning, "settings",
               "LOCKSTEP_OPTIMIZER_LR differs: not set on ranks 0-1, 3, \"0.5\" on rank 2", {2});
}

TEST_CASE("data that a rank cannot read are a fault, files of another size a warning") {
    ClusterFacts cluster = healthy();
    cluster.config_given = true;
    for (RankFacts& rank : cluster.ranks) rank.config.files = {{"data.train", "/d/images", 100, ""}};
    CHECK(bad(cluster).empty());
    cluster.ranks[2].config.files[0] =
        cluster.ranks[3].config.files[0] = {"data.train", "/d/images", -1, "No such file or directory"};
    check_only(cluster, Severity::kFault, "data",
               "data.train: /d/images cannot be read by ranks 2-3: No such file or directory", {2, 3});
    cluster.ranks[2].config.files[0] = cluster.ranks[3].config.files[0] = {"data.train", "/d/images", 90, ""};
    check_only(cluster, Severity::kWarning, "data",
               "/d/images is not one file: 90 bytes on ranks 2-3, 100 bytes on ranks 0-1", {});
}

TEST_CASE("each fault of a config is a finding of its own") {
    ClusterFacts cluster = healthy();
    cluster.config_given = true;
    cluster.ranks[1].config.fault = "x.toml:1:1: one\nx.toml:2:1: two";
    const std::vector<Finding> found = bad(cluster);
    REQUIRE(found.size() == 2);
    CHECK(found[0].text == "rank 1: x.toml:1:1: one");
    CHECK(found[1].text == "rank 1: x.toml:2:1: two");
}

TEST_CASE("a folder that cannot be written is a fault, little room a warning, one that others do not see a note") {
    ClusterFacts cluster = healthy();
    cluster.folder.fault = "Read-only file system";
    check_only(cluster, Severity::kFault, "folder", "/runs/x (in /runs) cannot be written: Read-only file system", {0});
    cluster = healthy();
    cluster.folder.free_bytes = 17 << 20;
    check_only(cluster, Severity::kWarning, "folder", "17 MiB is free", {0});
    cluster = healthy();
    cluster.folder.blind = {2, 3};
    CHECK(bad(cluster).empty());
    CHECK(find(examine(cluster), "shared", Severity::kNote)->text ==
          "ranks 2-3 do not see what rank 0 writes in /runs");
}

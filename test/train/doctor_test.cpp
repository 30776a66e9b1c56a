#include <catch2/catch.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "comm/thread_communicator.hpp"
#include "io/temp_folder.hpp"
#include "train/doctor.hpp"
#include "train/doctor_print.hpp"

using namespace lockstep;
using lockstep::test::TempFolder;

namespace {

/// A job that is in order: 2 hosts of 8 cores, 2 ranks each, started by mpirun with 4 cores a rank.
ClusterFacts healthy(int ranks = 4) {
    ClusterFacts cluster;
    for (int r = 0; r < ranks; ++r) {
        RankFacts rank;
        rank.local_rank = r % 2;
        rank.program = {"0.1.0", "arithmetic 1", "GCC 12.2.0",     "Release",
                        "00ff",  {"libm.so.6"},  "Open MPI 4.1.4", "Open MPI 4.1.4"};
        rank.host = {r < 2 ? "a" : "b", "Linux 6.1", "Fast CPU", 8,    int64_t{64} << 30,
                     int64_t{32} << 30, "madvise",   0,          false};
        rank.cgroup.cpuset = {0, 1, 2, 3, 4, 5, 6, 7};
        rank.limits.open_files = 1024;
        rank.launch = {"mpirun", "", ranks};
        const int first = 4 * (r % 2);
        rank.device = {{first, first + 1, first + 2, first + 3}, 4, 4, "avx512", "", {"avx512", "avx2", "scalar"}};
        rank.environment = {{"LANG", "C.UTF-8"}};
        rank.config.json = config_to_json(Config{});
        cluster.ranks.push_back(rank);
    }
    cluster.network.links = {{2, "b", 20e-6, 1e9, 1e-4, 2e-5}};
    cluster.network.all_reduce = {{4, 30e-6}, {65536, 90e-6}};
    cluster.folder = {"/runs/x", "/runs", "", int64_t{1} << 40, {}};
    return cluster;
}

const Finding* find(const Findings& findings, const std::string& subject, Severity severity) {
    const auto at = std::find_if(findings.begin(), findings.end(),
                                 [&](const Finding& f) { return f.subject == subject && f.severity == severity; });
    return at == findings.end() ? nullptr : &*at;
}

/// The one finding worse than a note, or nothing.
std::vector<Finding> bad(const ClusterFacts& cluster) {
    std::vector<Finding> found;
    for (const Finding& f : examine(cluster)) {
        if (f.severity >= Severity::kWarning) found.push_back(f);
    }
    return found;
}

void check_only(const ClusterFacts& cluster, Severity severity, const std::string& subject, const std::string& text,
                const std::vector<int>& ranks) {
    const std::vector<Finding> found = bad(cluster);
    std::string all;
    for (const Finding& f : found) all += f.subject + ": " + f.text + "\n";
    INFO(all);
    REQUIRE(found.size() == 1);
    CHECK(found[0].severity == severity);
    CHECK(found[0].subject == subject);
    CHECK_THAT(found[0].text, Catch::Contains(text));
    CHECK(!found[0].advice.empty());
    CHECK(found[0].ranks == ranks);
}

}  // namespace

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

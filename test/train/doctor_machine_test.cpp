// What a machine's own files tell: lists of CPUs, the host, its control groups.
#include <catch2/catch.hpp>
#include <fstream>

#include "io/temp_folder.hpp"
#include "train/doctor_machine.hpp"

using namespace lockstep;
using lockstep::test::TempFolder;

namespace {

void write_text(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("lists of CPUs read as the kernel writes them") {
    CHECK(parse_cpu_list("0-3,8") == std::vector<int>{0, 1, 2, 3, 8});
    CHECK(parse_cpu_list("").empty());
    CHECK(parse_cpu_list("x-3").empty());
    CHECK(cpu_list_text({0, 1, 2, 3, 8}) == "0-3,8");
    CHECK(cpu_list_text({5}) == "5");
    CHECK(cpu_list_text({}) == "");
}

TEST_CASE("a host is read from the kernel's files") {
    const TempFolder folder;
    const std::string root = folder.path();
    write_text(root + "/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 106\nmodel name\t: Fast CPU @ 3 GHz\n");
    write_text(root + "/proc/meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n");
    write_text(root + "/sys/devices/system/cpu/online", "0-11\n");
    write_text(root + "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write_text(root + "/dev/nvidia0", "");
    write_text(root + "/dev/nvidia11", "");
    write_text(root + "/dev/nvidiactl", "");
    const HostFacts facts = read_host(root);
    CHECK(facts.cpu == "Fast CPU @ 3 GHz");
    CHECK(facts.cpus == 12);
    CHECK(facts.memory_bytes == 16 << 20);
    CHECK(facts.memory_free_bytes == 8 << 20);
    CHECK(facts.huge_pages == "madvise");
    CHECK(facts.gpus == 2);
    CHECK(!facts.infiniband);
}

TEST_CASE("control groups of both versions are read, the tightest limit of any level counts") {
    const TempFolder folder;
    const std::string two = folder.path() + "/two", one = folder.path() + "/one";
    write_text(two + "/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    write_text(two + "/sys/fs/cgroup/slurm/cpu.max", "max 100000\n");
    write_text(two + "/sys/fs/cgroup/slurm/job_7/cpu.max", "250000 100000\n");
    write_text(two + "/sys/fs/cgroup/slurm/job_7/memory.max", "1048576\n");
    write_text(two + "/sys/fs/cgroup/slurm/job_7/memory.current", "4096\n");
    write_text(two + "/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    write_text(two + "/sys/fs/cgroup/slurm/job_7/step_0/cpuset.cpus.effective", "4-7\n");
    CgroupFacts facts = read_cgroup(two);
    CHECK(facts.cpus == 2.5);
    CHECK(facts.memory_bytes == 1048576);
    CHECK(facts.memory_used_bytes == 4096);
    CHECK(facts.cpuset == std::vector<int>{4, 5, 6, 7});

    write_text(one + "/proc/self/cgroup", "4:memory:/a/b\n3:cpuset:/not/here\n1:cpu,cpuacct:/a\n");
    write_text(one + "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_text(one + "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2097152\n");
    write_text(one + "/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "8192\n");
    write_text(one + "/sys/fs/cgroup/cpuset/cpuset.cpus", "0-1\n");
    write_text(one + "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    write_text(one + "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    facts = read_cgroup(one);
    CHECK(facts.cpus == 0);
    CHECK(facts.memory_bytes == 2097152);
    CHECK(facts.memory_used_bytes == 8192);
    CHECK(facts.cpuset == std::vector<int>{0, 1});
    CHECK(read_cgroup(folder.path() + "/none").memory_bytes == -1);
}

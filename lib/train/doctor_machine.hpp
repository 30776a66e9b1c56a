// What the kernel says about this host and about the share of it that this process was given. Linux's own files are
// enough, so hwloc is not needed; all are read below `root`, so that a test can show other machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// "0-3,8" as the kernel writes it -> 0, 1, 2, 3, 8; and back.
std::vector<int> parse_cpu_list(const std::string& text);
std::string cpu_list_text(const std::vector<int>& cpus);

struct HostFacts {
    std::string name;
    std::string kernel;  // "Linux 6.1.0-18-amd64 x86_64"
    std::string cpu;     // model
    int cpus = 0;        // online
    int64_t memory_bytes = 0;
    int64_t memory_free_bytes = 0;  // MemAvailable: free, or given back when asked for
    std::string huge_pages;         // transparent: always | madvise | never | "" (unknown)
    int gpus = 0;                   // devices of NVIDIA's driver
    bool infiniband = false;
};
HostFacts read_host(const std::string& root = "");

/// The control groups that this process is in, this one and all above it.
struct CgroupFacts {
    double cpus = 0;                // time of so many CPUs; 0: not limited
    std::vector<int> cpuset;        // CPUs to choose from; empty: unknown
    int64_t memory_bytes = -1;      // the smallest limit, -1: none
    int64_t memory_used_bytes = 0;  // of the group with that limit
};
CgroupFacts read_cgroup(const std::string& root = "");

/// The affinity mask of this process, in order.
std::vector<int> affinity_cpus();

/// `ulimit`: -1 is "unlimited".
struct LimitFacts {
    int64_t open_files = -1;
    int64_t address_space_bytes = -1;
    int64_t locked_bytes = -1;
    int64_t file_bytes = -1;
};
LimitFacts read_limits();

}  // namespace lockstep

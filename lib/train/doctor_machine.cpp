#include "train/doctor_machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "train/agreement.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The whole of a small file without its last newline; "" where there is none.
std::string text_of(const fs::path& path) {
    std::ifstream stream(path);
    std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

/// What follows `name` and a colon in "name : value" lines, the first of them.
std::string value_of(const std::string& text, std::string_view name) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(name)) continue;
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos || line.find_first_not_of(" \t", name.size()) != colon) continue;
        const std::size_t value = line.find_first_not_of(" \t", colon + 1);
        return value == std::string::npos ? "" : line.substr(value);
    }
    return "";
}

/// The number that a text begins with, or `otherwise`.
int64_t number_of(const std::string& text, int64_t otherwise) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() ? number : otherwise;
}

std::string cpu_model(const std::string& root, const std::string& machine) {
    const std::string info = text_of(root + "/proc/cpuinfo");
    if (const std::string name = value_of(info, "model name"); !name.empty()) return name;
    const std::string maker = value_of(info, "CPU implementer");  // 64-bit ARM has numbers only
    return maker.empty() ? machine : fmt::format("{} CPU {} part {}", machine, maker, value_of(info, "CPU part"));
}

int entries_named(const fs::path& folder, std::string_view start) {
    int count = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        const bool numbered =
            name.size() > start.size() && name.find_first_not_of("0123456789", start.size()) == std::string::npos;
        count += name.starts_with(start) && (start.empty() || numbered) ? 1 : 0;
    }
    return count;
}

/// A hierarchy of control groups: the folders of this process's group and of all above it, innermost first. In a
/// container the kernel may name a path that only the host sees: then the nearest folder that is there.
std::vector<fs::path> group_folders(const fs::path& mount, const std::string& path) {
    std::vector<fs::path> folders;
    std::error_code ignored;
    for (fs::path below = fs::path(path).relative_path(); !below.empty(); below = below.parent_path()) {
        if (fs::is_directory(mount / below, ignored)) folders.push_back(mount / below);
    }
    folders.push_back(mount);
    return folders;
}

void take_memory(CgroupFacts& facts, const std::string& limit, const std::string& used) {
    constexpr int64_t kNoLimit = int64_t{1} << 60;  // version 1 spells "none" as a number near 2^63
    const int64_t bytes = number_of(limit, -1);
    if (bytes < 0 || bytes >= kNoLimit || (facts.memory_bytes >= 0 && facts.memory_bytes <= bytes)) return;
    facts.memory_bytes = bytes;
    facts.memory_used_bytes = number_of(used, 0);
}

void take_cpus(CgroupFacts& facts, int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0) return;
    const double cpus = static_cast<double>(quota) / static_cast<double>(period);
    facts.cpus = facts.cpus > 0 ? std::min(facts.cpus, cpus) : cpus;
}

void take_cpuset(CgroupFacts& facts, const std::string& list) {
    if (facts.cpuset.empty()) facts.cpuset = parse_cpu_list(list);
}

void read_version_2(CgroupFacts& facts, const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
        const std::string quota = text_of(folder / "cpu.max");  // "200000 100000" or "max 100000"
        take_cpus(facts, number_of(quota, -1),
                  number_of(quota.substr(std::min(quota.find(' ') + 1, quota.size())), -1));
        take_memory(facts, text_of(folder / "memory.max"), text_of(folder / "memory.current"));
        take_cpuset(facts, text_of(folder / "cpuset.cpus.effective"));
    }
}

void read_version_1(CgroupFacts& facts, const std::string& controller, const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
        if (controller == "cpu") {
            take_cpus(facts, number_of(text_of(folder / "cpu.cfs_quota_us"), -1),
                      number_of(text_of(folder / "cpu.cfs_period_us"), -1));
        } else if (controller == "memory") {
            take_memory(facts, text_of(folder / "memory.limit_in_bytes"), text_of(folder / "memory.usage_in_bytes"));
        } else if (controller == "cpuset") {
            take_cpuset(facts, text_of(folder / "cpuset.effective_cpus"));
            take_cpuset(facts, text_of(folder / "cpuset.cpus"));
        }
    }
}

int64_t limit_of(int resource) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return -1;
    return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
    std::vector<int> cpus;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const int64_t first = number_of(part, -1);
        const std::size_t dash = part.find('-');
        const int64_t last = dash == std::string::npos ? first : number_of(part.substr(dash + 1), -1);
        for (int64_t cpu = first; first >= 0 && cpu <= std::min(last, first + 65535); ++cpu) {
            cpus.push_back(static_cast<int>(cpu));
        }
    }
    return cpus;
}

std::string cpu_list_text(const std::vector<int>& cpus) {
    std::string text;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t end = i + 1;
        while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
        text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
        if (end - i > 1) text += fmt::format("-{}", cpus[end - 1]);
        i = end;
    }
    return text;
}

HostFacts read_host(const std::string& root) {
    HostFacts facts;
    facts.name = host_name();
    utsname system{};
    uname(&system);
    facts.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
    facts.cpu = cpu_model(root, system.machine);
    facts.cpus = static_cast<int>(parse_cpu_list(text_of(root + "/sys/devices/system/cpu/online")).size());
    if (facts.cpus == 0) facts.cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    const std::string memory = text_of(root + "/proc/meminfo");
    facts.memory_bytes = 1024 * number_of(value_of(memory, "MemTotal"), 0);
    facts.memory_free_bytes = 1024 * number_of(value_of(memory, "MemAvailable"), 0);
    const std::string huge = text_of(root + "/sys/kernel/mm/transparent_hugepage/enabled");  // "always [madvise] never"
    const std::size_t open = huge.find('['), close = huge.find(']');
    if (open < close && close != std::string::npos) facts.huge_pages = huge.substr(open + 1, close - open - 1);
    facts.gpus = entries_named(root + "/dev", "nvidia");
    facts.infiniband = entries_named(root + "/sys/class/infiniband", "") > 0;
    return facts;
}

CgroupFacts read_cgroup(const std::string& root) {
    CgroupFacts facts;
    const fs::path mount = root + "/sys/fs/cgroup";
    std::istringstream lines(text_of(root + "/proc/self/cgroup"));  // "4:memory:/path", version 2: "0::/path"
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (controllers.empty()) {
            std::error_code ignored;
            const bool beside = fs::is_directory(mount / "unified", ignored);  // of version 1
            read_version_2(facts, group_folders(beside ? mount / "unified" : mount, path));
            continue;
        }
        std::istringstream names(controllers);
        for (std::string name; std::getline(names, name, ',');)
            read_version_1(facts, name, group_folders(mount / name, path));
    }
    return facts;
}

std::vector<int> affinity_cpus() {
    std::vector<int> cpus;
    for (int size = CPU_SETSIZE; size <= (1 << 20); size *= 4) {  // large machines have more CPUs than a cpu_set_t
        const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(size)),
                                                                   [](cpu_set_t* s) { CPU_FREE(s); });
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
        if (set == nullptr || sched_getaffinity(0, bytes, set.get()) != 0) continue;
        for (int cpu = 0; cpu < size; ++cpu) {
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
        }
        break;
    }
    return cpus;
}

LimitFacts read_limits() {
    return {limit_of(RLIMIT_NOFILE), limit_of(RLIMIT_AS), limit_of(RLIMIT_MEMLOCK), limit_of(RLIMIT_FSIZE)};
}

}  // namespace lockstep

#include "train/device.hpp"

#include <sched.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.hpp"
#include "core/thread_pool.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

/// Host and CPUs of this process: ranks with equal text share these CPUs.
std::string place() {
    std::string text = host_name() + ":";
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set)) text += std::to_string(cpu) + ",";
        }
    }
    return text;
}

}  // namespace

Isa isa_of(const std::string& name) {
    if (name == "avx2") return Isa::kAvx2;
    if (name == "avx512") return Isa::kAvx512;
    if (name == "neon") return Isa::kNeon;
    if (name == "scalar") return Isa::kScalar;
    return Isa::kAuto;
}

int fair_threads(Communicator& comm) {
    const std::vector<std::string> places = comm.all_gather(place());
    const std::string& own = places[static_cast<std::size_t>(comm.rank())];
    const auto sharers = static_cast<int>(std::count(places.begin(), places.end(), own));
    const auto before = static_cast<int>(std::count(places.begin(), places.begin() + comm.rank(), own));
    const int cpus = available_cpus();
    // The first ranks get the CPUs that are left over.
    return std::max(1, cpus / sharers + (before < cpus % sharers ? 1 : 0));
}

DeviceChoice choose_device(Communicator& comm, const Config& config) {
    const int fair = fair_threads(comm);  // collective: asked by every rank
    DeviceChoice choice;
    choice.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : fair;
    agree(comm, [&] { choice.backend = make_cpu_backend({isa_of(config.device.isa), choice.threads}); });
    return choice;
}

}  // namespace lockstep

#include "train/device.hpp"

#include <sched.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.hpp"
#include "core/log.hpp"
#include "core/thread_pool.hpp"
#include "train/agreement.hpp"
#include "train/cuda_library.hpp"
#include "train/gpu_choice.hpp"

namespace lockstep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankDevice, host, gpu, visible, nccl)

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

/// The CUDA library and what it found, where this rank computes on a GPU.
struct Gpus {
    std::unique_ptr<CudaPlugin> library;
    std::vector<int> devices;  // those that can be used, as CUDA numbers them
    RankDevice told;
};

void look_for_gpus(Gpus& gpus) {
    gpus.library = load_cuda_library();
    const std::vector<GpuFacts> found = gpus.library->devices();
    for (std::size_t device = 0; device < found.size(); ++device) {
        if (!found[device].usable) continue;
        gpus.devices.push_back(static_cast<int>(device));
        gpus.told.visible.push_back(found[device].pci);
    }
    if (gpus.devices.empty()) {
        fail(ErrorKind::kUsage,
             "{} is too old: it has compute capability {}.{}, and Lockstep's kernels need 8.0 (Ampere) or newer; use "
             "device.backend = \"cpu\"",
             found.front().name, found.front().major, found.front().minor);
    }
    gpus.told.nccl = !gpus.library->versions().nccl.empty();
    gpus.told.gpu = true;
}

/// device.backend on this rank. "auto" takes a GPU where there is one, and says why not where there could be.
Gpus resolve(const Config& config) {
    Gpus gpus;
    const bool vendor = config.device.arithmetic == "vendor";
    std::string why = "NVIDIA's driver is not here";
    if (config.device.backend == "cuda") {
        look_for_gpus(gpus);
    } else if (config.device.backend == "auto" && gpu_may_be_here()) {
        try {
            look_for_gpus(gpus);
        } catch (const Error& e) {
            why = e.what();
            if (!vendor) inform("device.backend = \"auto\" takes the CPU: {}", why);
            gpus = {};
        }
    }
    if (!gpus.told.gpu && vendor) {
        fail(ErrorKind::kUsage,
             "device.arithmetic = \"vendor\" needs a GPU, and this rank can use none ({}); use \"defined\"", why);
    }
    gpus.told.host = host_name();
    return gpus;
}

GpuOptions options_for(const Config& config, CudaPlugin& library, int device) {
    GpuOptions options;
    options.device = device;
    options.streams = static_cast<int>(config.device.streams);
    options.vendor = config.device.arithmetic == "vendor";
    options.precision = config.device.precision;
    options.debug_sync = environment_variable("LOCKSTEP_DEBUG_SYNC").value_or("0") != "0";
    for (const std::string& name : library.variables()) {
        if (const auto value = environment_variable(name.c_str())) options.environment.push_back(name + "=" + *value);
    }
    return options;
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

DeviceChoice choose_device(Communicator& comm, const Config& config, bool warns) {
    const int fair = fair_threads(comm);  // collective: asked by every rank
    DeviceChoice choice;
    choice.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : fair;
    Gpus gpus;
    agree(comm, [&] { comm.work_aside([&] { gpus = resolve(config); }); });
    std::vector<RankDevice> ranks;
    for (const std::string& told : comm.all_gather(nlohmann::json(gpus.told).dump())) {
        ranks.push_back(nlohmann::json::parse(told).get<RankDevice>());
    }
    GpuChoice gpu;
    agree(comm, [&] { gpu = choose_gpu(ranks, comm.rank(), config.device.transport); });
    if (warns && !gpu.warning.empty()) warn("{}", gpu.warning);
    agree(comm, [&] {
        if (gpu.device < 0) {
            choice.backend = make_cpu_backend({isa_of(config.device.isa), choice.threads});
            return;
        }
        comm.begin_work();
        const int device = gpus.devices[static_cast<std::size_t>(gpu.device)];
        const GpuOptions options = options_for(config, *gpus.library, device);
        choice.backend = gpus.library->make_backend(options);
        // A launch that waits for its kernel cannot be captured.
        if (config.device.graphs && !options.debug_sync) choice.graphs = gpus.library->make_graphs(*choice.backend);
    });
    // Not agreed upon: NCCL is joined by all or none, and a rank that cannot ends the others' wait.
    if (gpu.device >= 0) {
        choice.exchange = gpu.nccl ? gpus.library->make_nccl(comm, *choice.backend)
                                   : gpus.library->make_staged(comm, *choice.backend);
    }
    return choice;
}

}  // namespace lockstep

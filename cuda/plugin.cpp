// The entry of Lockstep's CUDA library, and the interface that the executable works with.
#include "cuda/plugin.hpp"

#include "core/error.hpp"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/backend/step_graphs.hpp"
#include "cuda/comm/staged_communicator.hpp"
#include "cuda/devices.hpp"
#include "plugin_interface.hpp"
#ifdef LOCKSTEP_HAVE_NCCL
#include "cuda/comm/nccl_communicator.hpp"
#endif

namespace lockstep {
namespace {

CudaPrecision precision_of(const std::string& name) {
    if (name == "tf32") return CudaPrecision::kTf32;
    if (name == "bf16") return CudaPrecision::kBf16;
    if (name == "fp16") return CudaPrecision::kFp16;
    return CudaPrecision::kFp32;
}

class Plugin final : public CudaPlugin {
  public:
    std::vector<GpuFacts> devices() override { return list_gpus(); }
    CudaVersions versions() override { return cuda_versions(); }
    std::vector<std::string> variables() override { return {kVendorVariables.begin(), kVendorVariables.end()}; }

    std::unique_ptr<Backend> make_backend(const GpuOptions& options) override {
        CudaOptions cuda;
        cuda.device = options.device;
        cuda.streams = options.streams;
        cuda.vendor = options.vendor;
        cuda.precision = precision_of(options.precision);
        cuda.debug_sync = options.debug_sync;
        cuda.environment = options.environment;
        return make_cuda_backend(cuda);
    }

    std::unique_ptr<StepGraphs> make_graphs(Backend& backend) override { return make_cuda_step_graphs(backend); }

    std::unique_ptr<Communicator> make_staged(Communicator& host, Backend& backend) override {
        return make_staged_communicator(host, backend.communication());
    }

    std::unique_ptr<Communicator> make_nccl(Communicator& host, Backend& backend) override {
#ifdef LOCKSTEP_HAVE_NCCL
        return make_nccl_communicator(host, backend.communication());
#else
        (void)host, (void)backend;
        fail(ErrorKind::kUsage, "this build of Lockstep is without NCCL: use device.transport = \"staged\"");
#endif
    }
};

}  // namespace
}  // namespace lockstep

extern "C" __attribute__((visibility("default"))) const lockstep::CudaPluginEntry* lockstep_cuda_plugin() {
    static constexpr lockstep::CudaPluginEntry entry{
        LOCKSTEP_PLUGIN_INTERFACE,
        [] { return static_cast<lockstep::CudaPlugin*>(std::make_unique<lockstep::Plugin>().release()); }};
    return &entry;
}

// What the executable asks of Lockstep's CUDA library, which alone is linked with NVIDIA's: it is loaded only where a
// GPU is wanted, since those libraries take 1.6 s and 200 MiB of every process that has them. No header of CUDA is
// needed here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace lockstep {

class StepGraphs;  // lib/backend/step_graphs.hpp; beside this file "backend/step_graphs.hpp" is CUDA's own

/// A GPU that this process sees.
struct GpuFacts {
    std::string name;  // "NVIDIA H100 80GB HBM3"
    std::string pci;   // "0000:17:00.0": the same for every process of a host
    std::int64_t memory_bytes = 0;
    int major = 0, minor = 0;  // compute capability
    bool usable = true;        // new enough
};

/// Versions, "" where a library is absent.
struct CudaVersions {
    std::string driver;  // the newest CUDA that it supports
    std::string runtime;
    std::string nccl;
    std::string cublas;
    std::string cudnn;
};

struct GpuOptions {
    int device = 0;   // among the visible ones
    int streams = 0;  // device.streams
    bool vendor = false;
    std::string precision = "fp32";
    bool debug_sync = false;
    std::vector<std::string> environment;  // "NAME=value" of variables() that are set
};

class CudaPlugin {
  public:
    virtual ~CudaPlugin() = default;

    /// All GPUs that this process sees, at least one. Throws kUsage where there is none, or no driver, or one too old
    /// for the libraries. Takes no memory on any GPU.
    virtual std::vector<GpuFacts> devices() = 0;
    virtual CudaVersions versions() = 0;
    /// Environment variables that change the bits of vendor arithmetic.
    virtual std::vector<std::string> variables() = 0;

    /// Makes the device the calling thread's: a rank works on one thread.
    virtual std::unique_ptr<Backend> make_backend(const GpuOptions& options) = 0;
    /// Graphs of that backend's work; it must outlive them.
    virtual std::unique_ptr<StepGraphs> make_graphs(Backend& backend) = 0;
    /// What carries device memory of that backend between the ranks of `host`: through host memory, or by NCCL
    /// (collective over `host`, each rank on a GPU of its own). Both arguments must outlive it.
    virtual std::unique_ptr<Communicator> make_staged(Communicator& host, Backend& backend) = 0;
    virtual std::unique_ptr<Communicator> make_nccl(Communicator& host, Backend& backend) = 0;
};

/// The library's one entry, lockstep_cuda_plugin(), gives this. The text comes first: where it is not the executable's
/// own (plugin_interface()), nothing else in the library may be touched, since classes may differ.
struct CudaPluginEntry {
    const char* interface_id;
    CudaPlugin* (*make)();  // owned by the caller
};
inline constexpr const char* kCudaPluginEntry = "lockstep_cuda_plugin";
using CudaPluginFunction = const CudaPluginEntry* (*)();

}  // namespace lockstep

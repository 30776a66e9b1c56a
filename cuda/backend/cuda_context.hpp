// What every operation of the GPU backend shares: the device, its streams, memory, and how the run wants it used. Host
// code only.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

/// Vendor arithmetic's number format of products; sums are always fp32.
enum class CudaPrecision { kFp32, kTf32, kBf16, kFp16 };

struct CudaOptions {
    int device = 0;       // among the visible ones
    int streams = 0;      // device.streams: shards at a time; 0 = chosen
    bool vendor = false;  // device.arithmetic
    CudaPrecision precision = CudaPrecision::kFp32;
    bool debug_sync = false;  // wait after every launch, so that a fault is reported where it happened
    /// "NAME=value" of the environment variables in kVendorVariables that are set: they change the libraries' bits.
    std::vector<std::string> environment;
};

/// What NVIDIA's libraries read from the environment and what changes their bits: part of vendor arithmetic's
/// fingerprint. Whoever fills CudaOptions looks them up.
inline constexpr std::array<const char*, 5> kVendorVariables{"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
                                                             "CUBLAS_EMULATION_STRATEGY", "CUBLAS_WORKSPACE_CONFIG",
                                                             "CUBLASLT_HEURISTICS_LUT_FILE"};

class StreamScratch;  // memory for parts of sums, by stream: cuda/backend/stream_scratch.hpp
class Vendor;         // handles and scratch of cuBLAS and cuDNN, a set for each stream: cuda/backend/vendor.hpp

/// A CUDA stream of the device, never the default one.
class CudaStream final : public Stream {
  public:
    /// `urgent`: its kernels go before those of other streams.
    explicit CudaStream(int index, bool urgent = false);
    ~CudaStream() override;
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;
    cudaStream_t get() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};
/// The CUDA stream behind a stream that this backend gave out.
inline cudaStream_t cuda_stream(Stream& stream) {
    return static_cast<CudaStream&>(stream).get();
}

/// An event without a time, for the order between streams and for waiting without blocking a core.
class CudaEvent {
  public:
    CudaEvent();
    ~CudaEvent();
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;
    void record(cudaStream_t stream);
    void make_wait(cudaStream_t stream) const;
    /// Whether all that was recorded has ended. Throws where the device reports a fault.
    bool done() const;
    void wait() const;

  private:
    cudaEvent_t event_ = nullptr;
};

class CudaContext {
  public:
    /// Makes the device current on the calling thread. Throws kUsage where it cannot be used: none, too old, no driver,
    /// driver too old.
    explicit CudaContext(const CudaOptions& options);
    ~CudaContext();

    /// Makes the device current on the calling thread; any other thread that uses the backend begins with it.
    void make_current() const;
    const CudaOptions& options() const { return options_; }
    const cudaDeviceProp& properties() const { return properties_; }

    /// Stream 0 … streams()-1 take shards; main() and communication() are number 0 too, streams of their own.
    CudaStream& main() { return *main_; }
    CudaStream& communication() { return *communication_; }
    int streams() const { return static_cast<int>(shards_.size()); }
    CudaStream& shard(int i) { return *shards_[static_cast<std::size_t>(i)]; }

    /// Zeroed device memory on a 256-byte border. Out of memory: kRuntime, with what was asked for and what is free.
    std::unique_ptr<Buffer> allocate(std::size_t bytes);
    /// How often device memory was allocated or released: while it stays, so do all addresses.
    uint64_t memory_changes() const { return *memory_changes_; }
    /// Zeroed pinned memory.
    std::unique_ptr<Buffer> allocate_host(std::size_t bytes);

    /// Empty until the first operation that needs it makes it.
    std::shared_ptr<StreamScratch>& scratch() { return scratch_; }
    /// Empty until the first operation of vendor arithmetic makes it.
    std::shared_ptr<Vendor>& vendor() { return vendor_; }
    const std::shared_ptr<Vendor>& vendor() const { return vendor_; }

  private:
    CudaOptions options_;
    cudaDeviceProp properties_{};
    std::shared_ptr<std::atomic<uint64_t>> memory_changes_ = std::make_shared<std::atomic<uint64_t>>(0);
    std::unique_ptr<CudaStream> main_, communication_;
    std::vector<std::unique_ptr<CudaStream>> shards_;
    std::shared_ptr<StreamScratch> scratch_;
    std::shared_ptr<Vendor> vendor_;  // last, so that it goes before the streams that it uses
};

// One factory a planned operation. Defined arithmetic: own kernels, bits of arithmetic 1. Vendor: cuBLAS and cuDNN.
std::unique_ptr<Dense> make_cuda_dense(CudaContext& context, int in, int out, const FoldProgram& fold, bool relu);
std::unique_ptr<Conv> make_cuda_conv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data);
std::unique_ptr<Pool> make_cuda_pool(CudaContext& context, const PoolShape& shape);
std::unique_ptr<Dense> make_vendor_dense(CudaContext& context, int in, int out, const FoldProgram& fold, bool relu);
std::unique_ptr<Conv> make_vendor_conv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data);
/// What the bits of vendor arithmetic depend on: architecture, number of multiprocessors, library versions, precision,
/// and the variables of options().environment.
std::string vendor_fingerprint(const CudaContext& context);
/// The cuDNN algorithms chosen so far, a line for each convolution and number of rows; for logs and checkpoints.
std::vector<std::string> vendor_algorithms(const CudaContext& context);

/// The whole backend.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options);

}  // namespace lockstep

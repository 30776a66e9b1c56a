// What the operations of vendor arithmetic share: for each stream a cuBLAS handle with a workspace of its own, a cuDNN
// handle and scratch memory, and how operands reach the libraries.
//
// The promise of vendor arithmetic is the same bits at any number of ranks of one GPU type, so a library must be asked
// the same question wherever a shard is computed. What it answers depends on shapes, formats and the alignment of the
// operands, hence: every product is one shard's, and where a shard's rows do not lie on kVendorAlignment (which depends
// on the shards before them on the same rank) they are copied to where they do.
#pragma once

#include <cublas_v2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "cuda/backend/cuda_context.hpp"
#include "cuda/kernels/cast.h"

namespace lockstep {

/// The largest alignment that the libraries' choice of an algorithm knows of, in bytes.
inline constexpr std::size_t kVendorAlignment = 256;

/// Scratch areas of a stream; each is free again when the operation that took it has been queued.
enum class VendorArea { kFirst, kSecond, kResult, kPartials, kLeaves, kWorkspace };
inline constexpr std::size_t kVendorAreas = 6;

class DnnHandle;  // cuda/backend/vendor_dnn.hpp

/// One stream's handles and scratch. Not shared between threads, as a stream is not.
class VendorStream {
  public:
    VendorStream(CudaContext& context, CudaStream& stream) : context_(context), stream_(stream.get()) {}
    ~VendorStream();
    VendorStream(const VendorStream&) = delete;
    VendorStream& operator=(const VendorStream&) = delete;

    CudaContext& context() const { return context_; }
    cudaStream_t get() const { return stream_; }
    /// Made at the first call, with the workspace that NVIDIA recommends for the architecture.
    cublasHandle_t blas();
    /// Empty until vendor_dnn makes it.
    std::shared_ptr<DnnHandle>& dnn() { return dnn_; }

    /// At least `bytes` of the area. What lies there stays unless the area grows; planning makes it large enough, so
    /// that a step does not allocate.
    std::byte* area(VendorArea which, std::size_t bytes);
    float* floats(VendorArea which, int64_t elements) {
        return reinterpret_cast<float*>(area(which, static_cast<std::size_t>(elements) * sizeof(float)));
    }

    /// n floats as an operand: themselves where they are fp32 and aligned, else rounded or copied into the area.
    const void* operand(VendorArea which, NumberFormat format, int64_t n, const float* from);

  private:
    CudaContext& context_;
    cudaStream_t stream_;
    cublasHandle_t blas_ = nullptr;
    std::shared_ptr<DnnHandle> dnn_;
    std::unique_ptr<Buffer> blas_workspace_;
    std::array<std::unique_ptr<Buffer>, kVendorAreas> areas_;
};

class Vendor {
  public:
    /// That of the context, made at the first call.
    static Vendor& of(CudaContext& context);
    explicit Vendor(CudaContext& context);

    /// Of a stream of the context.
    VendorStream& on(Stream& stream) { return on(cuda_stream(stream)); }
    VendorStream& main() { return *streams_.front(); }
    /// Every stream that a shard may be computed on.
    const std::vector<std::unique_ptr<VendorStream>>& streams() const { return streams_; }
    void add_algorithm(std::string line);
    const std::vector<std::string>& algorithms() const { return algorithms_; }

  private:
    VendorStream& on(cudaStream_t stream);

    std::vector<std::unique_ptr<VendorStream>> streams_;  // main, then one a shard
    std::vector<std::string> algorithms_;
};

/// The format of operands; tf32 is fp32 that the library rounds itself.
NumberFormat number_format(CudaPrecision precision);
const char* precision_name(CudaPrecision precision);

inline bool is_vendor_aligned(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % kVendorAlignment == 0;
}

/// Floats between two things that both lie aligned.
inline int64_t vendor_padded(int64_t elements) {
    const auto unit = static_cast<int64_t>(kVendorAlignment / sizeof(float));
    return (elements + unit - 1) / unit * unit;
}

/// "9.19.0", or "none" where Lockstep was built without cuDNN.
std::string dnn_version();

/// Throws Error(kRuntime) with the call, what the library says, the CUDA error behind it if there is one, and the
/// place; OutOfMemory where the library found too little memory.
[[noreturn]] void vendor_failed(const char* call, const std::string& status, bool out_of_memory,
                                const std::source_location& where);
void cublas_check(cublasStatus_t status, const char* call,
                  const std::source_location& where = std::source_location::current());
#define CUBLAS_CHECK(call) ::lockstep::cublas_check((call), #call)

}  // namespace lockstep

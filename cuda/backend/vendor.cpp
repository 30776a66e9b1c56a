#include "cuda/backend/vendor.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "cuda/access.h"

namespace lockstep {
namespace {

// NVIDIA's recommendation. Never by what is free: the size decides which algorithms cuBLAS may take.
std::size_t blas_workspace_bytes(const cudaDeviceProp& device) {
    return std::size_t{device.major >= 9 ? 32U : 4U} << 20;
}

cublasMath_t math_mode(CudaPrecision precision) {
    switch (precision) {
        case CudaPrecision::kFp32:
            return CUBLAS_DEFAULT_MATH;
        case CudaPrecision::kTf32:
            return CUBLAS_TF32_TENSOR_OP_MATH;
        case CudaPrecision::kBf16:
        case CudaPrecision::kFp16:
            break;
    }
    return static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
}

}  // namespace

VendorStream::~VendorStream() {
    if (blas_ != nullptr) cublasDestroy(blas_);
}

cublasHandle_t VendorStream::blas() {
    if (blas_ == nullptr) {
        context_.make_current();
        blas_workspace_ = context_.allocate(blas_workspace_bytes(context_.properties()));
        CUBLAS_CHECK(cublasCreate(&blas_));
        CUBLAS_CHECK(cublasSetStream(blas_, stream_));
        // After the stream, whose setting takes the workspace away. Without one of its own, streams at work at once
        // share what cuBLAS has, and their bits do not repeat.
        CUBLAS_CHECK(cublasSetWorkspace(blas_, blas_workspace_->data(), blas_workspace_->bytes()));
        CUBLAS_CHECK(cublasSetMathMode(blas_, math_mode(context_.options().precision)));
    }
    return blas_;
}

std::byte* VendorStream::area(VendorArea which, std::size_t bytes) {
    if (bytes == 0) return nullptr;
    std::unique_ptr<Buffer>& buffer = areas_[static_cast<std::size_t>(which)];
    if (!buffer || buffer->bytes() < bytes) {
        if (buffer) CUDA_CHECK(cudaStreamSynchronize(stream_));  // work that still uses the old one
        buffer.reset();
        buffer = context_.allocate(bytes);
    }
    return buffer->data();
}

const void* VendorStream::operand(VendorArea which, NumberFormat format, int64_t n, const float* from) {
    if (format == NumberFormat::kFp32 && is_vendor_aligned(from)) return from;
    std::byte* const to = area(which, static_cast<std::size_t>(n) * bytes_of(format));
    narrow(format, n, from, to, stream_);
    return to;
}

Vendor& Vendor::of(CudaContext& context) {
    std::shared_ptr<Vendor>& vendor = context.vendor();
    if (!vendor) vendor = std::make_shared<Vendor>(context);
    return *vendor;
}

Vendor::Vendor(CudaContext& context) {
    streams_.push_back(std::make_unique<VendorStream>(context, context.main()));
    for (int i = 0; i < context.streams(); ++i) {
        if (context.shard(i).get() == context.main().get()) continue;
        streams_.push_back(std::make_unique<VendorStream>(context, context.shard(i)));
    }
}

VendorStream& Vendor::on(cudaStream_t stream) {
    for (const auto& each : streams_) {
        if (each->get() == stream) return *each;
    }
    fail(ErrorKind::kRuntime, "vendor arithmetic was given a stream that is none of its device's {}", streams_.size());
}

void Vendor::add_algorithm(std::string line) {
    log_verbose(line);
    algorithms_.push_back(std::move(line));
}

NumberFormat number_format(CudaPrecision precision) {
    if (precision == CudaPrecision::kBf16) return NumberFormat::kBf16;
    if (precision == CudaPrecision::kFp16) return NumberFormat::kFp16;
    return NumberFormat::kFp32;
}

const char* precision_name(CudaPrecision precision) {
    switch (precision) {
        case CudaPrecision::kFp32:
            return "fp32";
        case CudaPrecision::kTf32:
            return "tf32";
        case CudaPrecision::kBf16:
            return "bf16";
        case CudaPrecision::kFp16:
            break;
    }
    return "fp16";
}

std::string vendor_fingerprint(const CudaContext& context) {
    int major = 0, minor = 0, patch = 0;
    CUBLAS_CHECK(cublasGetProperty(MAJOR_VERSION, &major));
    CUBLAS_CHECK(cublasGetProperty(MINOR_VERSION, &minor));
    CUBLAS_CHECK(cublasGetProperty(PATCH_LEVEL, &patch));
    const cudaDeviceProp& device = context.properties();
    std::string text = fmt::format("vendor sm_{}{}, {} multiprocessors, cuBLAS {}.{}.{}, cuDNN {}, {} products",
                                   device.major, device.minor, device.multiProcessorCount, major, minor, patch,
                                   dnn_version(), precision_name(context.options().precision));
    for (const std::string& variable : context.options().environment) text += ", " + variable;
    return text;
}

std::vector<std::string> vendor_algorithms(const CudaContext& context) {
    return context.vendor() ? context.vendor()->algorithms() : std::vector<std::string>{};
}

void vendor_failed(const char* call, const std::string& status, bool out_of_memory, const std::source_location& where) {
    const cudaError_t behind = cudaGetLastError();
    const std::string message =
        fmt::format("{} at {}: {}{}{}", call, place_text(where), status, behind == cudaSuccess ? "" : "; ",
                    behind == cudaSuccess ? "" : cudaGetErrorString(behind));
    if (out_of_memory || behind == cudaErrorMemoryAllocation) {
        out_of_device_memory(message + ": the GPU is out of memory");
    }
    throw Error(ErrorKind::kRuntime, message);
}

void cublas_check(cublasStatus_t status, const char* call, const std::source_location& where) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    vendor_failed(call, fmt::format("{} ({})", cublasGetStatusName(status), cublasGetStatusString(status)),
                  status == CUBLAS_STATUS_ALLOC_FAILED, where);
}

}  // namespace lockstep

// The device of a rank with its streams and memory.
#include "cuda/backend/cuda_context.hpp"

#include <cstring>
#include <utility>

#include "core/bytes_text.hpp"
#include "core/error.hpp"
#include "cuda/access.h"
#include "cuda/backend/device_check.hpp"

namespace lockstep {
namespace {

// Shards are small: one alone leaves most multiprocessors idle in its last waves of blocks, a few together do not. Each
// stream costs activations and gradients of its own.
constexpr int kChosenStreams = 4;

class DeviceBuffer final : public Buffer {
  public:
    DeviceBuffer(std::byte* data, std::size_t bytes, std::shared_ptr<std::atomic<uint64_t>> changes)
        : data_(data), bytes_(bytes), changes_(std::move(changes)) {
        ++*changes_;
    }
    ~DeviceBuffer() override {
        ++*changes_;
        cudaFree(data_);
    }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    std::byte* data() override { return data_; }
    std::size_t bytes() const override { return bytes_; }

  private:
    std::byte* data_;
    std::size_t bytes_;
    std::shared_ptr<std::atomic<uint64_t>> changes_;  // of the context, which it may outlive
};

class PinnedBuffer final : public Buffer {
  public:
    PinnedBuffer(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
    ~PinnedBuffer() override { cudaFreeHost(data_); }
    std::byte* data() override { return data_; }
    std::size_t bytes() const override { return bytes_; }

  private:
    std::byte* data_;
    std::size_t bytes_;
};

std::string asked_for(std::size_t bytes) {
    return bytes_text(static_cast<std::int64_t>(bytes)) + " asked for";
}

}  // namespace

CudaContext::CudaContext(const CudaOptions& options) : options_(options), properties_(open_device(options.device)) {
    if (options.streams < 0) fail(ErrorKind::kUsage, "device.streams = {}: must be at least 0", options.streams);
    set_debug_sync(options.debug_sync);
    main_ = std::make_unique<CudaStream>(0);
    communication_ = std::make_unique<CudaStream>(0, true);  // small, and other ranks wait for it
    const int streams = options.streams == 0 ? kChosenStreams : options.streams;
    for (int i = 0; i < streams; ++i) shards_.push_back(std::make_unique<CudaStream>(i));
}

CudaContext::~CudaContext() = default;

void CudaContext::make_current() const {
    CUDA_CHECK(cudaSetDevice(options_.device));
}

std::unique_ptr<Buffer> CudaContext::allocate(std::size_t bytes) {
    make_current();
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes == 0 ? 1 : bytes);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        out_of_device_memory(
            fmt::format("GPU {} ({}) is out of memory: {}", options_.device, properties_.name, asked_for(bytes)));
    }
    cuda_check(status, "cudaMalloc(&data, bytes)");
    auto buffer = std::make_unique<DeviceBuffer>(static_cast<std::byte*>(data), bytes, memory_changes_);
    if (bytes > 0) {
        CUDA_CHECK(cudaMemsetAsync(data, 0, bytes, main_->get()));
        CUDA_CHECK(cudaStreamSynchronize(main_->get()));  // any stream may use it from now on
    }
    return buffer;
}

std::unique_ptr<Buffer> CudaContext::allocate_host(std::size_t bytes) {
    make_current();
    void* data = nullptr;
    const cudaError_t status = cudaHostAlloc(&data, bytes == 0 ? 1 : bytes, cudaHostAllocDefault);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        fail(ErrorKind::kRuntime,
             "the host is out of memory that can be pinned: {}; see ulimit -l and the memory of this job's cgroup",
             asked_for(bytes));
    }
    cuda_check(status, "cudaHostAlloc(&data, bytes, cudaHostAllocDefault)");
    auto buffer = std::make_unique<PinnedBuffer>(static_cast<std::byte*>(data), bytes);
    std::memset(data, 0, bytes);
    return buffer;
}

}  // namespace lockstep

// Pinned host memory for messages that are staged: blocks of a few sizes, made when first needed and then used again
// and again, so that a step that is like the one before allocates nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/backend/cuda_context.hpp"

namespace lockstep {

class PinnedBlock {
  public:
    explicit PinnedBlock(std::size_t bytes);
    ~PinnedBlock();
    PinnedBlock(const PinnedBlock&) = delete;
    PinnedBlock& operator=(const PinnedBlock&) = delete;

    std::byte* data() { return memory_; }
    std::size_t capacity() const { return capacity_; }
    /// Copies from or to the device, queued on the stream; copied() tells when the last one is done.
    void download(const void* device, std::size_t bytes, cudaStream_t stream);
    void upload(void* device, std::size_t bytes, cudaStream_t stream);
    bool copied();

  private:
    std::byte* memory_ = nullptr;
    std::size_t capacity_;
    CudaEvent done_;
    bool copying_ = false;
};

class PinnedBlocks {
  public:
    /// A block of at least `bytes` that nobody has and that no copy reads any more.
    PinnedBlock& take(std::size_t bytes);
    /// Back again; a copy from it may still be under way.
    void give(PinnedBlock& block);
    std::size_t count() const { return blocks_.size(); }

  private:
    std::vector<std::unique_ptr<PinnedBlock>> blocks_;
    std::vector<PinnedBlock*> free_;
};

}  // namespace lockstep

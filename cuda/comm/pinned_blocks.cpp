#include "cuda/comm/pinned_blocks.hpp"

#include <algorithm>
#include <bit>

#include "cuda/access.h"

namespace lockstep {
namespace {

constexpr std::size_t kSmallest = 4096;

}  // namespace

PinnedBlock::PinnedBlock(std::size_t bytes) : capacity_(std::bit_ceil(std::max(bytes, kSmallest))) {
    void* memory = nullptr;
    CUDA_CHECK(cudaHostAlloc(&memory, capacity_, cudaHostAllocDefault));
    memory_ = static_cast<std::byte*>(memory);
}

PinnedBlock::~PinnedBlock() {
    cudaFreeHost(memory_);  // after a fault it fails, too, and the first error is the one to report
}

void PinnedBlock::download(const void* device, std::size_t bytes, cudaStream_t stream) {
    if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(memory_, device, bytes, cudaMemcpyDeviceToHost, stream));
    done_.record(stream);
    copying_ = true;
}

void PinnedBlock::upload(void* device, std::size_t bytes, cudaStream_t stream) {
    if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(device, memory_, bytes, cudaMemcpyHostToDevice, stream));
    done_.record(stream);
    copying_ = true;
}

bool PinnedBlock::copied() {
    if (copying_ && done_.done()) copying_ = false;
    return !copying_;
}

PinnedBlock& PinnedBlocks::take(std::size_t bytes) {
    // Of its own size class alone: a large block in use for a small message would be missed by the next large one.
    const std::size_t capacity = std::bit_ceil(std::max(bytes, kSmallest));
    const auto found = std::find_if(free_.begin(), free_.end(), [&](PinnedBlock* block) {
        return block->capacity() == capacity && block->copied();
    });
    if (found != free_.end()) {
        PinnedBlock& block = **found;
        free_.erase(found);
        return block;
    }
    blocks_.push_back(std::make_unique<PinnedBlock>(bytes));
    free_.reserve(blocks_.size());
    return *blocks_.back();
}

void PinnedBlocks::give(PinnedBlock& block) {
    free_.push_back(&block);
}

}  // namespace lockstep

// Copies between host and device. Memory of allocate_host is pinned: its copies are queued like any operation. Any
// other host memory passes through two pinned chunks of our own, so that one is filled while the other travels.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "cuda/backend/cuda_context.hpp"

namespace lockstep {

class HostCopies {
  public:
    explicit HostCopies(CudaContext& context) : context_(context) {}
    void upload(cudaStream_t stream, const void* host, void* device, std::size_t bytes);
    void download(cudaStream_t stream, const void* device, void* host, std::size_t bytes);

  private:
    struct Chunk {
        std::unique_ptr<Buffer> memory;
        CudaEvent copied;
    };
    /// The chunk of piece number `piece`, made at the first use.
    Chunk& chunk(std::size_t piece);

    CudaContext& context_;
    std::array<Chunk, 2> chunks_;
};

}  // namespace lockstep

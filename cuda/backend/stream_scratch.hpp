// Device memory for what an operation leaves behind before its end (parts of sums), one area a stream, shared by all
// operations planned on a context: an operation finds there nothing that it has not written itself. Grows while
// operations are planned and never in a step.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cuda/backend/cuda_context.hpp"

namespace lockstep {

class StreamScratch {
  public:
    explicit StreamScratch(CudaContext& context)
        : context_(context), areas_(static_cast<std::size_t>(context.streams())) {}

    /// The context's own, made at the first call.
    static StreamScratch& of(CudaContext& context);

    /// At least so many floats for every stream that takes shards, and for the main one. Waits for the device where
    /// memory moves.
    void reserve(int64_t floats);
    /// The main stream and that of shard 0 share one area: they are never under way at once.
    float* of(const Stream& stream) const;

  private:
    CudaContext& context_;
    int64_t floats_ = 0;
    std::vector<std::unique_ptr<Buffer>> areas_;
};

}  // namespace lockstep

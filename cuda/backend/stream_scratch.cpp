#include "cuda/backend/stream_scratch.hpp"

#include "cuda/access.h"

namespace lockstep {

StreamScratch& StreamScratch::of(CudaContext& context) {
    if (context.scratch() == nullptr) context.scratch() = std::make_shared<StreamScratch>(context);
    return *context.scratch();
}

void StreamScratch::reserve(int64_t floats) {
    if (floats <= floats_) return;
    if (floats_ > 0) CUDA_CHECK(cudaDeviceSynchronize());  // queued work may still use what is given back here
    for (std::unique_ptr<Buffer>& area : areas_) {
        area.reset();  // before the larger one is asked for
        area = context_.allocate(static_cast<std::size_t>(floats) * sizeof(float));
    }
    floats_ = floats;
}

float* StreamScratch::of(const Stream& stream) const {
    const std::unique_ptr<Buffer>& area = areas_.at(static_cast<std::size_t>(stream.index()));
    return area == nullptr ? nullptr : area->floats();
}

}  // namespace lockstep

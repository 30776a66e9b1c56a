#include "cuda/backend/cuda_backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "cuda/backend/step_graphs.hpp"
#include "cuda/backend/stream_scratch.hpp"

namespace lockstep {

std::string CudaBackend::name() const {
    const cudaDeviceProp& device = context_.properties();
    return fmt::format("cuda {} (compute capability {}.{}), {} stream{}, {} arithmetic", device.name, device.major,
                       device.minor, streams(), streams() == 1 ? "" : "s",
                       context_.options().vendor ? "vendor" : "defined");
}

void CudaBackend::synchronize() {
    const NvtxRange range("synchronize");
    context_.make_current();
    CUDA_CHECK(cudaDeviceSynchronize());
}

void CudaBackend::order(Stream& before, Stream& after) {
    before_.record(cuda_stream(before));
    before_.make_wait(cuda_stream(after));  // holds what was recorded by now: the event may be used again at once
}

std::vector<ShardRange> CudaBackend::split_items(int count) const {
    const int parts = std::clamp(count, 1, streams());
    std::vector<ShardRange> ranges;
    for (int i = 0; i < parts; ++i) {
        ranges.push_back(
            {static_cast<int>(int64_t{count} * i / parts), static_cast<int>(int64_t{count} * (i + 1) / parts)});
    }
    return ranges;
}

void CudaBackend::for_each_range(std::span<const ShardRange> ranges, FunctionRef<void(Stream&, int)> body) {
    const int count = static_cast<int>(ranges.size());
    if (count <= 1) {
        if (count == 1) body(context_.main(), 0);
        return;
    }
    const NvtxRange range("shards");
    begun_.record(context_.main().get());
    for (int i = 0; i < count; ++i) begun_.make_wait(context_.shard(i).get());
    try {
        for (int i = 0; i < count; ++i) body(context_.shard(i), i);
    } catch (...) {
        join(count);
        throw;
    }
    join(count);
}

void CudaBackend::join(int ranges) {
    for (int i = 0; i < ranges; ++i) {
        CudaEvent& ended = *ended_[static_cast<std::size_t>(i)];
        ended.record(context_.shard(i).get());
        ended.make_wait(context_.main().get());
    }
}

float* CudaBackend::scratch(Stream& stream, int64_t floats) {
    StreamScratch& areas = StreamScratch::of(context_);
    areas.reserve(floats);
    return areas.of(stream);
}

void CudaBackend::fold_rows(Stream& stream, const FoldProgram& fold, int columns, const float* x,
                            std::span<float* const> out) {
    const DeviceFold& known = folds_.find(fold);
    for (std::size_t root = 0; root < known.roots.size(); ++root) {
        const FoldRoot leaves = known.roots[root];
        launch_fold_rows(known.device() + leaves.first, leaves.count, fold.rows, columns, x, out[root],
                         cuda_stream(stream));
    }
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
    return std::make_unique<CudaBackend>(options);
}

std::unique_ptr<CudaStepGraphs> make_cuda_step_graphs(Backend& backend) {
    return std::make_unique<CudaStepGraphs>(static_cast<CudaBackend&>(backend).context());
}

}  // namespace lockstep

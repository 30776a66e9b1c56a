// Dense layers of defined arithmetic on a GPU: own matrix products (kernels/gemm.h), planned once for a layer's shape
// and shards.
#include <algorithm>

#include "backend/cpu/reference_gemm.hpp"
#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/backend/dense_plan.hpp"
#include "cuda/backend/stream_scratch.hpp"
#include "cuda/kernels/fold_rows.h"
#include "cuda/kernels/gemm.h"

namespace lockstep {
namespace {

static_assert(kGemmChain == kChainTerms, "the GPU's chains are those of the definition");

int chains_of(int terms) {
    return (terms + kGemmChain - 1) / kGemmChain;
}

class CudaDense final : public Dense {
  public:
    CudaDense(CudaContext& context, int in, int out, const FoldProgram& fold, bool relu)
        : scratch_(StreamScratch::of(context)),
          in_(in),
          out_(out),
          rows_(fold.rows),
          relu_(relu),
          fold_(dense_fold(fold)) {
        if (rows_ == 0) return;
        const GemmDevice device{std::max(1, context.properties().multiProcessorCount),
                                context.properties().sharedMemPerBlockOptin};
        const auto note = [this](GemmWay way, const GemmSize& size, int chains) {
            if (way.split) scratch_.reserve(gemm_partial_floats(size, chains));
            return way;
        };
        const GemmSize forward{rows_, out, in}, backward{rows_, in, out};
        forward_ = note(gemm_way(device, forward), forward, chains_of(in));
        backward_ = note(gemm_way(device, backward), backward, chains_of(out));
        for (const DenseFold::Root& root : fold_.roots) {
            gradients_.push_back(note(gradient_way(device, in, out, root), {out, in, root.samples}, root.chains));
            gemm_allow_shared(gradients_.back(), root.kept);
        }
        upload_leaves(context);
    }

    void forward(Stream& stream, const float* x, const float* w, const float* bias, float* y) override {
        gemm_forward(forward_, rows_, in_, out_, x, w, bias, relu_, y, scratch_.of(stream), cuda_stream(stream));
    }

    void backward_data(Stream& stream, const float* dy, const float* w, float* dx) override {
        gemm_backward_data(backward_, rows_, in_, out_, dy, w, dx, scratch_.of(stream), cuda_stream(stream));
    }

    void backward_weights(Stream& stream, const float* x, const float* dy, std::span<float* const> dw,
                          std::span<float* const> db) override {
        for (std::size_t i = 0; i < fold_.roots.size(); ++i) {
            const DenseFold::Root& root = fold_.roots[i];
            gemm_weight_gradient(gradients_[i], in_, out_, {leaves() + root.first_chain, root.chains, root.kept}, x, dy,
                                 rows_, dw[i], scratch_.of(stream), cuda_stream(stream));
            if (db.empty() || db[i] == nullptr) continue;
            launch_fold_rows(leaves() + root.first_shard, root.shards, rows_, out_, dy, db[i], cuda_stream(stream));
        }
    }

  private:
    void upload_leaves(CudaContext& context) {
        const std::size_t bytes = fold_.leaves.size() * sizeof(FoldLeaf);
        const auto host = context.allocate_host(bytes);
        std::copy(fold_.leaves.begin(), fold_.leaves.end(), reinterpret_cast<FoldLeaf*>(host->data()));
        leaves_ = context.allocate(bytes);
        const cudaStream_t stream = context.main().get();
        CUDA_CHECK(cudaMemcpyAsync(leaves_->data(), host->data(), bytes, cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    const FoldLeaf* leaves() const { return reinterpret_cast<const FoldLeaf*>(leaves_->data()); }

    StreamScratch& scratch_;  // parts of split sums
    int in_, out_, rows_;
    bool relu_;
    DenseFold fold_;
    GemmWay forward_, backward_;
    std::vector<GemmWay> gradients_;  // of each root
    std::unique_ptr<Buffer> leaves_;  // fold_.leaves on the device
};

}  // namespace

std::unique_ptr<Dense> make_cuda_dense(CudaContext& context, int in, int out, const FoldProgram& fold, bool relu) {
    return std::make_unique<CudaDense>(context, in, out, fold, relu);
}

}  // namespace lockstep

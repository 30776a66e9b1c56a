// Dense layers of defined arithmetic on a GPU: own matrix products (kernels/gemm.h), planned once for a layer's shape
// and shards. Parts of split sums need memory of their own, which only one stream may use at a time: it is the main
// stream's, and work on other streams, which share the device anyway, does without a split.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/arithmetic.hpp"
#include "backend/cpu/reference_gemm.hpp"
#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/backend/dense_plan.hpp"
#include "cuda/kernels/dense_bias.h"
#include "cuda/kernels/gemm.h"

namespace lockstep {
namespace {

static_assert(kGemmChain == kChainTerms, "the GPU's chains are those of the definition");
static_assert(kGemmMostKept >= kMaxFoldStack + 1);

class CudaDense final : public Dense {
  public:
    CudaDense(CudaContext& context, int in, int out, const FoldProgram& fold, bool relu)
        : context_(context), in_(in), out_(out), rows_(fold.rows), relu_(relu), fold_(dense_fold(fold)) {
        if (rows_ == 0) return;
        const GemmDevice device{std::max(1, context.properties().multiProcessorCount),
                                context.properties().sharedMemPerBlockOptin};
        const GemmSize forward{rows_, out, in}, backward{rows_, in, out};
        for (const bool main : {false, true}) {
            Ways& ways = main ? main_ : others_;
            ways.forward = gemm_way(device, forward, main);
            ways.backward = gemm_way(device, backward, main);
            for (const DenseFold::Root& root : fold_.roots) {
                ways.gradients.push_back(gradient_way(device, in, out, root, main));
                gemm_allow_shared(ways.gradients.back(), root.kept_chains);
            }
        }
        allocate_partial(forward, backward);
        upload_program();
    }

    void forward(Stream& stream, const float* x, const float* w, const float* bias, float* y) override {
        if (rows_ == 0) return;
        gemm_forward(ways(stream).forward, rows_, in_, out_, x, w, bias, relu_, y, partial(), cuda_stream(stream));
    }

    void backward_data(Stream& stream, const float* dy, const float* w, float* dx) override {
        if (rows_ == 0) return;
        gemm_backward_data(ways(stream).backward, rows_, in_, out_, dy, w, dx, partial(), cuda_stream(stream));
    }

    void backward_weights(Stream& stream, const float* x, const float* dy, std::span<float* const> dw,
                          std::span<float* const> db) override {
        const auto* const program = reinterpret_cast<const int32_t*>(program_ == nullptr ? nullptr : program_->data());
        for (std::size_t i = 0; i < fold_.roots.size(); ++i) {
            const DenseFold::Root& root = fold_.roots[i];
            gemm_weight_gradient(ways(stream).gradients[i], in_, out_,
                                 {program, root.first_chain, root.chains, root.kept_chains}, x, dy, rows_, dw[i],
                                 partial(), cuda_stream(stream));
            if (db.empty()) continue;
            dense_bias_gradient(rows_, out_, {program, root.first_shard, root.shards, root.kept_shards}, dy, db[i],
                                cuda_stream(stream));
        }
    }

  private:
    struct Ways {
        GemmWay forward, backward;
        std::vector<GemmWay> gradients;  // of each root
    };

    const Ways& ways(Stream& stream) const { return &stream == &context_.main() ? main_ : others_; }
    float* partial() { return partial_ == nullptr ? nullptr : partial_->floats(); }

    void allocate_partial(const GemmSize& forward, const GemmSize& backward) {
        int64_t floats = 0;
        const auto want = [&](GemmWay way, const GemmSize& size, int64_t chains) {
            if (way.split) floats = std::max(floats, gemm_partial_floats(size, chains));
        };
        want(main_.forward, forward, (in_ + kGemmChain - 1) / kGemmChain);
        want(main_.backward, backward, (out_ + kGemmChain - 1) / kGemmChain);
        for (std::size_t i = 0; i < fold_.roots.size(); ++i)
            want(main_.gradients[i], {out_, in_, rows_}, fold_.roots[i].chains);
        if (floats > 0) partial_ = context_.allocate(static_cast<std::size_t>(floats) * sizeof(float));
    }

    void upload_program() {
        const std::size_t bytes = fold_.program.size() * sizeof(int32_t);
        const auto host = context_.allocate_host(bytes);
        std::memcpy(host->data(), fold_.program.data(), bytes);
        program_ = context_.allocate(bytes);
        const cudaStream_t stream = context_.main().get();
        CUDA_CHECK(cudaMemcpyAsync(program_->data(), host->data(), bytes, cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }

    CudaContext& context_;
    int in_, out_, rows_;
    bool relu_;
    DenseFold fold_;
    Ways main_, others_;
    std::unique_ptr<Buffer> program_;  // fold_.program on the device
    std::unique_ptr<Buffer> partial_;  // parts of split sums, one operation at a time
};

}  // namespace

std::unique_ptr<Dense> make_cuda_dense(CudaContext& context, int in, int out, const FoldProgram& fold, bool relu) {
    return std::make_unique<CudaDense>(context, in, out, fold, relu);
}

}  // namespace lockstep

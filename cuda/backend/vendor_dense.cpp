// Dense layers by cuBLAS, shard by shard: a product of a shard's rows is the same call on whichever rank it is made.
// The weight gradient of each shard is a leaf, and leaves are added in the order of the fold program.
#include <algorithm>
#include <span>
#include <utility>

#include "cuda/access.h"
#include "cuda/backend/vendor.hpp"
#include "cuda/kernels/bias.h"
#include "cuda/kernels/channel_sums.h"
#include "cuda/kernels/elementwise.h"

namespace lockstep {
namespace {

/// A row-major matrix product as cuBLAS reads it: to it every matrix is transposed, its columns are our rows.
struct Gemm {
    cublasOperation_t first, second;
    int m, n, k;
    int leading_first, leading_second;
};

class VendorDense final : public Dense {
  public:
    VendorDense(CudaContext& context, int in, int out, FoldProgram fold, bool relu)
        : vendor_(Vendor::of(context)),
          format_(number_format(context.options().precision)),
          in_(in),
          out_(out),
          fold_(std::move(fold)),
          relu_(relu),
          bias_offset_(vendor_padded(int64_t{in} * out)),
          leaf_elements_(bias_offset_ + vendor_padded(out)) {
        for (const FoldProgram::Leaf& leaf : fold_.leaves) most_rows_ = std::max(most_rows_, leaf.end - leaf.begin);
        // Several leaves are folded by one call, on the main stream; a layer that is computed shard by shard has one
        // leaf, on whichever stream its shard is.
        if (fold_.leaves.size() > 1) {
            reserve(vendor_.main());
        } else {
            for (const auto& stream : vendor_.streams()) reserve(*stream);
        }
    }

    void forward(Stream& stream, const float* x, const float* w, const float* bias, float* y) override {
        VendorStream& on = vendor_.on(stream);
        const void* const weights = weights_operand(on, w);
        for (const FoldProgram::Leaf& leaf : fold_.leaves) {
            const int rows = leaf.end - leaf.begin;
            float* const to = y + int64_t{leaf.begin} * out_;
            const void* const from =
                on.operand(VendorArea::kFirst, format_, int64_t{rows} * in_, x + int64_t{leaf.begin} * in_);
            float* const product = aligned_result(on, to, int64_t{rows} * out_);
            multiply(on, {CUBLAS_OP_T, CUBLAS_OP_N, out_, rows, in_, in_, in_}, weights, from, product);
            finish_product(NumberFormat::kFp32, rows, out_, product, bias, relu_, to, on.get());
        }
    }

    void backward_data(Stream& stream, const float* dy, const float* w, float* dx) override {
        VendorStream& on = vendor_.on(stream);
        const void* const weights = weights_operand(on, w);
        for (const FoldProgram::Leaf& leaf : fold_.leaves) {
            const int rows = leaf.end - leaf.begin;
            const int64_t n = int64_t{rows} * in_;
            float* const to = dx + int64_t{leaf.begin} * in_;
            const void* const from =
                on.operand(VendorArea::kFirst, format_, int64_t{rows} * out_, dy + int64_t{leaf.begin} * out_);
            float* const product = aligned_result(on, to, n);
            multiply(on, {CUBLAS_OP_N, CUBLAS_OP_N, in_, rows, out_, in_, out_}, weights, from, product);
            if (product != to) widen(NumberFormat::kFp32, n, product, to, on.get());
        }
    }

    void backward_weights(Stream& stream, const float* x, const float* dy, std::span<float* const> dw,
                          std::span<float* const> db) override {
        VendorStream& on = vendor_.on(stream);
        float* const stack = on.floats(VendorArea::kLeaves, fold_.stack * leaf_elements_);
        float* top = stack;  // first free place
        const bool biased = !db.empty() && db.front() != nullptr;
        for (const FoldProgram::Leaf& leaf : fold_.leaves) {
            const auto root = static_cast<std::size_t>(leaf.root);  // meant only where leaf.root >= 0
            const bool alone = leaf.adds == 0 && leaf.root >= 0;
            float* const weights = alone && is_vendor_aligned(dw[root]) ? dw[root] : top;
            compute_leaf(on, leaf, x, dy, weights, biased ? top + bias_offset_ : nullptr);
            top += leaf_elements_;
            for (int add = 0; add < leaf.adds; ++add) {
                top -= leaf_elements_;
                float* const left = top - leaf_elements_;
                const bool last = leaf.root >= 0 && add + 1 == leaf.adds;
                add_leaves(on, left, top, last ? dw[root] : left,
                           biased ? (last ? db[root] : left + bias_offset_) : nullptr);
            }
            if (leaf.root < 0) continue;
            top -= leaf_elements_;
            if (!alone) continue;
            if (weights != dw[root]) widen(NumberFormat::kFp32, int64_t{in_} * out_, weights, dw[root], on.get());
            if (biased) widen(NumberFormat::kFp32, out_, top + bias_offset_, db[root], on.get());
        }
    }

  private:
    void reserve(VendorStream& on) {
        const int64_t rows = most_rows_;
        const int64_t wide = std::max(in_, out_);
        on.blas();
        on.area(VendorArea::kFirst, static_cast<std::size_t>(rows * wide) * bytes_of(format_));
        on.area(VendorArea::kSecond,
                std::max<std::size_t>(static_cast<std::size_t>(rows * wide) * bytes_of(format_),
                                      format_ == NumberFormat::kFp32 ? 0 : static_cast<std::size_t>(in_) * out_ * 2));
        on.floats(VendorArea::kResult, rows * wide);
        on.floats(VendorArea::kPartials, channel_partials(rows, out_));
        on.floats(VendorArea::kLeaves, fold_.stack * leaf_elements_);
    }

    // fp32 weights lie at the same place of the flat weights on every rank, so their alignment is the same everywhere.
    const void* weights_operand(VendorStream& on, const float* w) {
        if (format_ == NumberFormat::kFp32) return w;
        return on.operand(VendorArea::kSecond, format_, int64_t{in_} * out_, w);
    }

    static float* aligned_result(VendorStream& on, float* to, int64_t n) {
        return is_vendor_aligned(to) ? to : on.floats(VendorArea::kResult, n);
    }

    // The default algorithm is chosen by rule; the alternative (autotuning) measures, so that bits would vary.
    void multiply(VendorStream& on, const Gemm& g, const void* first, const void* second, float* result) const {
        const float one = 1, zero = 0;
        const cudaDataType type = format_ == NumberFormat::kFp32   ? CUDA_R_32F
                                  : format_ == NumberFormat::kBf16 ? CUDA_R_16BF
                                                                   : CUDA_R_16F;
        CUBLAS_CHECK(cublasGemmEx(on.blas(), g.first, g.second, g.m, g.n, g.k, &one, first, type, g.leading_first,
                                  second, type, g.leading_second, &zero, result, CUDA_R_32F, g.m, CUBLAS_COMPUTE_32F,
                                  CUBLAS_GEMM_DEFAULT));
        after_launch(on.get(), "cublasGemmEx");
    }

    void compute_leaf(VendorStream& on, const FoldProgram::Leaf& leaf, const float* x, const float* dy, float* weights,
                      float* bias) const {
        const int rows = leaf.end - leaf.begin;
        const float* const own_dy = dy + int64_t{leaf.begin} * out_;
        const void* const first =
            on.operand(VendorArea::kFirst, format_, int64_t{rows} * in_, x + int64_t{leaf.begin} * in_);
        const void* const second = on.operand(VendorArea::kSecond, format_, int64_t{rows} * out_, own_dy);
        multiply(on, {CUBLAS_OP_N, CUBLAS_OP_T, in_, out_, rows, in_, out_}, first, second, weights);
        if (bias == nullptr) return;
        channel_sums(rows, out_, own_dy, on.floats(VendorArea::kPartials, channel_partials(rows, out_)), bias,
                     on.get());
    }

    void add_leaves(VendorStream& on, const float* left, const float* right, float* weights, float* bias) const {
        launch_add(int64_t{in_} * out_, left, right, weights, on.get());
        if (bias != nullptr) launch_add(out_, left + bias_offset_, right + bias_offset_, bias, on.get());
    }

    Vendor& vendor_;
    NumberFormat format_;
    int in_, out_;
    FoldProgram fold_;
    bool relu_;
    int64_t bias_offset_, leaf_elements_;  // a leaf: weights, then bias, each aligned
    int most_rows_ = 0;
};

}  // namespace

std::unique_ptr<Dense> make_vendor_dense(CudaContext& context, int in, int out, const FoldProgram& fold, bool relu) {
    return std::make_unique<VendorDense>(context, in, out, fold, relu);
}

}  // namespace lockstep

// The plans of a dense layer. Which way is taken depends on the number of samples alone, and never changes a bit:
//   forward          16 to about 256 samples: samples on the lanes, W read in place; else features on the lanes, W
//                    packed on the way
//   data gradient    few samples: W in place; else W packed on the way
//   weight gradient  X and dY packed, tiles of all shards with the tree inside
#include "backend/cpu/dense.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "backend/cpu/dense_forward_kernel.hpp"
#include "backend/cpu/dense_wgrad_kernel.hpp"
#include "backend/cpu/gemm_loops.hpp"
#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference_gemm.hpp"

namespace lockstep {
namespace {

// Measured on one core with two pipes of 512 bits, 256 to 4,096 features.
constexpr int kSamplesOnLanes = 16;  // from here on, samples fill the lanes of a panel well enough
constexpr int kPackWeights = 256;    // from here on, packing W is paid for, but
constexpr int kLongSums = 2048;      // sums of so many terms pay for it a little later only: Y is written more seldom

// The data gradient packs W from this many samples on. Each row of a panel in place is a few cache lines, W's row
// length apart: the larger W, the fewer of them are still in a cache when the next tile comes.
int pack_weights_backward(int64_t weights) {
    return weights <= (1 << 19) ? 192 : weights <= (1 << 22) ? 24 : 4;
}

// Of sums kept between blocks of k, of a thread: where they end, X's block is read anew. The kernel fetches them ahead,
// so they may lie in the third-level cache.
constexpr int64_t kPartialBytes = 4 * 1024 * 1024;

int64_t round_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

/// No bias is no gradients of it, or null ones.
bool has_bias(std::span<float* const> db) {
    return !db.empty() && db.front() != nullptr;
}

class CpuDense final : public Dense {
  public:
    CpuDense(CpuContext& context, int in, int out, FoldProgram fold, bool relu)
        : context_(context),
          in_(in),
          out_(out),
          rows_(fold.rows),
          fold_(std::move(fold)),
          chains_(chains_of(fold_)),
          relu_(relu),
          gemm_(gemm_kernels(context.isa())),
          pack_(pack_kernels(context.isa())),
          lanes_(dense_forward_kernels(context.isa())),
          wgrad_(dense_wgrad_kernels(context.isa())),
          elementwise_(elementwise_kernels(context.isa())),
          forward_plan_(plan_dense_gemm(rows_, in, out, in, out, gemm_.tile_rows)),
          backward_plan_(plan_dense_gemm(rows_, out, in, out, in, gemm_.tile_rows)) {
        const int64_t sample_columns = round_up(rows_, lanes_.panel_width(rows_)), height = lanes_.tile_rows.of(rows_);
        chunk_ = std::max<int64_t>(1, kPartialBytes / (std::max<int64_t>(1, sample_columns) * sizeof(float)) / height) *
                 height;
        chunk_ = std::min(chunk_, round_up(out_, height));
        context_.reserve_workspace(
            std::max<std::size_t>(kPackScratchBytes, chunk_ * std::max<int64_t>(1, sample_columns) * sizeof(float)));
        const int64_t x_panels = round_up(in_, wgrad_.panel_width) * rows_;
        const int64_t dy_panels = round_up(out_, wgrad_.tile_rows) * rows_;
        dy_offset_ = round_up(x_panels, 16);
        const int64_t transposed = samples_on_lanes() ? in_ * sample_columns : 0;
        packed_ = CpuMemory(static_cast<std::size_t>(std::max(dy_offset_ + dy_panels, transposed)) * sizeof(float));
    }

    void forward(Stream& stream, const float* x, const float* w, const float* bias, float* y) override {
        CpuStream& cpu = cpu_stream(stream);
        if (samples_on_lanes()) {
            forward_on_lanes(cpu, x, w, bias, y);
        } else {
            run_packed(cpu, forward_plan_, x, {w, in_, true}, {y, bias, relu_});
        }
    }

    void backward_data(Stream& stream, const float* dy, const float* w, float* dx) override {
        CpuStream& cpu = cpu_stream(stream);
        const GemmSource weights{w, in_, false};
        const GemmOutput output{dx, nullptr, false};
        if (rows_ >= pack_weights_backward(in_ * out_)) {
            run_packed(cpu, backward_plan_, dy, weights, output);
            return;
        }
        const int64_t whole_panels = in_ / gemm_.panel_width(static_cast<int>(in_));
        const GemmPanels in_place{w, in_, gemm_.panel_width(static_cast<int>(in_))};
        run_parts(cpu, terms(), [&](int part, int parts) {
            GemmShare share = gemm_share(backward_plan_.tiles(), gemm_.panels(static_cast<int>(in_)), part, parts);
            // A whole panel row is read: the last panel, if it is narrower, would run past the end of W.
            GemmShare last = share;
            last.panels.begin = std::max(share.panels.begin, whole_panels);
            share.panels.end = std::min(share.panels.end, whole_panels);
            run_gemm(gemm_, backward_plan_, dy, in_place, output, share);
            run_packing(gemm_, pack_, backward_plan_, dy, weights, output, last, scratch(cpu, part));
        });
    }

    void backward_weights(Stream& stream, const float* x, const float* dy, std::span<float* const> dw,
                          std::span<float* const> db) override {
        CpuStream& cpu = cpu_stream(stream);
        float* const x_panels = packed();
        float* const dy_panels = packed() + dy_offset_;
        const int64_t x_count = round_up(in_, wgrad_.panel_width) / wgrad_.panel_width;
        const int64_t dy_count = round_up(out_, wgrad_.tile_rows) / wgrad_.tile_rows;
        run_parts(cpu, terms(), [&](int part, int parts) {
            pack_panels(x, in_, wgrad_.panel_width, part_of(x_count, part, parts), x_panels);
            pack_panels(dy, out_, wgrad_.tile_rows, part_of(dy_count, part, parts), dy_panels);
        });
        const DenseWgradOperands operands{dy_panels, x_panels, in_, out_, dw};
        run_parts(cpu, terms(), [&](int part, int parts) {
            const bool by_outputs = dy_count >= x_count;
            wgrad_.run(chains_, operands, by_outputs ? part_of(dy_count, part, parts) : IndexRange{0, dy_count},
                       by_outputs ? IndexRange{0, x_count} : part_of(x_count, part, parts));
            if (!has_bias(db)) return;
            const IndexRange outputs = part_of(out_, part, parts, 16);
            elementwise_.fold_rows(fold_, static_cast<int>(out_), static_cast<int>(outputs.begin),
                                   static_cast<int>(outputs.end), dy, db);
        });
    }

  private:
    bool samples_on_lanes() const {
        return rows_ >= kSamplesOnLanes && (in_ < kLongSums ? rows_ < kPackWeights : rows_ <= kPackWeights);
    }
    int64_t terms() const { return rows_ * in_ * out_; }
    float* packed() { return reinterpret_cast<float*>(packed_.data()); }
    float* scratch(CpuStream& stream, int part) const { return context_.float_workspace(stream.workspace_index(part)); }

    void pack_panels(const float* from, int64_t columns, int width, IndexRange panels, float* to) const {
        const int64_t stride = int64_t{rows_} * width;
        pack_.rows(from, columns, {{0, rows_}, panels, columns, width, stride}, to + panels.begin * stride);
    }

    void forward_on_lanes(CpuStream& stream, const float* x, const float* w, const float* bias, float* y) {
        const int width = lanes_.panel_width(rows_);
        const int64_t panels = round_up(rows_, width) / width;
        run_parts(stream, terms(), [&](int part, int parts) {
            const IndexRange k = part_of(in_, part, parts, 64);
            pack_.columns(x, in_, {k, {0, panels}, rows_, width, in_ * width}, packed() + k.begin * width);
        });
        run_parts(stream, terms(), [&](int part, int parts) {
            const IndexRange outputs = part_of(out_, part, parts, lanes_.tile_rows.of(rows_));
            for (int64_t o = outputs.begin; o < outputs.end; o += chunk_) {
                lanes_.run(w, in_, out_, {o, std::min(outputs.end, o + chunk_)}, packed(), rows_, bias, relu_, y,
                           scratch(stream, part));
            }
        });
    }

    void run_packed(CpuStream& stream, const GemmPlan& plan, const float* a, const GemmSource& b,
                    const GemmOutput& output) {
        run_parts(stream, terms(), [&](int part, int parts) {
            run_packing(gemm_, pack_, plan, a, b, output, gemm_share(plan.tiles(), gemm_.panels(plan.n), part, parts),
                        scratch(stream, part));
        });
    }

    CpuContext& context_;
    int64_t in_, out_;
    int rows_;
    FoldProgram fold_, chains_;
    bool relu_;
    const GemmKernels& gemm_;
    const PackKernels& pack_;
    const DenseForwardKernels& lanes_;
    const DenseWgradKernels& wgrad_;
    const ElementwiseKernels& elementwise_;
    GemmPlan forward_plan_, backward_plan_;
    int64_t chunk_ = 0;      // output features whose sums between blocks of k fit a thread's scratch
    int64_t dy_offset_ = 0;  // of dY's panels in packed_, after X's
    CpuMemory packed_;       // X^T, or the panels of X and dY: one at a time
};

class ReferenceDense final : public Dense {
  public:
    ReferenceDense(int in, int out, FoldProgram fold, bool relu)
        : in_(in), out_(out), fold_(std::move(fold)), relu_(relu) {}

    void forward(Stream& stream, const float* x, const float* w, const float* bias, float* y) override {
        for_rows(stream, [&](int64_t row, int rows) {
            reference_dense_forward(rows, in_, out_, x + row * in_, w, bias, relu_, y + row * out_);
        });
    }

    void backward_data(Stream& stream, const float* dy, const float* w, float* dx) override {
        for_rows(stream, [&](int64_t row, int rows) {
            reference_dense_backward_data(rows, in_, out_, dy + row * out_, w, dx + row * in_);
        });
    }

    void backward_weights(Stream& stream, const float* x, const float* dy, std::span<float* const> dw,
                          std::span<float* const> db) override {
        run_parts(cpu_stream(stream), int64_t{fold_.rows} * in_ * out_, [&](int part, int parts) {
            const IndexRange outputs = part_of(out_, part, parts);
            reference_dense_weight_gradient(fold_, in_, out_, outputs, x, dy, dw);
            if (has_bias(db)) reference_dense_bias_gradient(fold_, out_, outputs, dy, db);
        });
    }

  private:
    void for_rows(Stream& stream, FunctionRef<void(int64_t row, int rows)> body) {
        run_parts(cpu_stream(stream), int64_t{fold_.rows} * in_ * out_, [&](int part, int parts) {
            const IndexRange rows = part_of(fold_.rows, part, parts);
            body(rows.begin, static_cast<int>(rows.end - rows.begin));
        });
    }

    int in_, out_;
    FoldProgram fold_;
    bool relu_;
};

}  // namespace

std::unique_ptr<Dense> make_cpu_dense(CpuContext& context, int in, int out, const FoldProgram& fold, bool relu) {
    if (context.isa() == Isa::kScalar) return std::make_unique<ReferenceDense>(in, out, fold, relu);
    return std::make_unique<CpuDense>(context, in, out, fold, relu);
}

}  // namespace lockstep

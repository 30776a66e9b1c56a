// The plans of a convolution. Three ways, chosen by its channels:
//   any            rows and taps as a plan of gemm tiles (one for each group of channels), weights packed once a step
//   few channels   (less than 8, as of pictures) a bordered copy of a few samples at a time: whole kernel rows are one
//   run depthwise      channels on the lanes
#include "backend/cpu/conv.hpp"

#include <algorithm>
#include <map>

#include "backend/conv_shape.hpp"
#include "backend/cpu/conv_layout.hpp"
#include "backend/cpu/conv_wgrad_kernel.hpp"
#include "backend/cpu/depthwise_kernel.hpp"
#include "backend/cpu/gemm_loops.hpp"
#include "backend/cpu/scalar_conv.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int kFewChannels = 8;

class CpuConv final : public Conv {
  public:
    CpuConv(CpuContext& context, const ConvShape& shape, bool relu, bool backward_data)
        : context_(context),
          shape_(shape),
          group_in_(shape.in.channels / shape.groups),
          group_out_(shape.out_channels / shape.groups),
          relu_(relu),
          backward_data_(backward_data),
          depthwise_(shape.groups > 1 && group_in_ == 1 && group_out_ == 1),
          few_channels_(shape.groups == 1 && shape.in.channels < kFewChannels),
          bordered_(few_channels_ && std::max({shape.pad_top, shape.pad_bottom, shape.pad_left, shape.pad_right}) > 0),
          gemm_(gemm_kernels(context.isa())),
          wgrad_(conv_wgrad_kernels(context.isa())),
          depthwise_kernels_(depthwise_kernels(context.isa())),
          wgrad_plan_(plan_conv_wgrad(shape, bordered_,
                                      few_channels_ && shape.dilation_w == 1 && (bordered_ || shape.pad_left == 0))),
          layout_(shape, depthwise_, wgrad_.lanes) {
        packed_forward_ = CpuMemory(layout_.packed_bytes(gemm_, false));
        if (backward_data) packed_backward_ = CpuMemory(layout_.packed_bytes(gemm_, true));
        context_.reserve_workspace(static_cast<std::size_t>(wgrad_scratch()) * sizeof(float));
        if (!bordered_) return;
        // Blocks of output rows whose images stay in the second-level cache together.
        const int64_t height = shape.out_h();
        wgrad_blocks_ =
            std::max<int64_t>(1, samples_in_cache(bordered_in(shape)) * height / wgrad_plan_.rows_per_block);
        const int64_t samples = (wgrad_blocks_ * wgrad_plan_.rows_per_block - 1) / height + 2;
        reserve(std::max<int64_t>(samples, samples_in_cache(bordered_in(shape))));
    }

    void plan_rows(int rows) override {
        if (rows < 1 || plans_.contains(rows)) return;
        const int share = bordered_ ? (rows + context_.threads() - 1) / context_.threads() : rows;
        Plans plans;
        plans.forward = plan_conv_forward(shape_, rows, bordered_, gemm_.tile_rows, share);
        if (bordered_) plans.forward.a_stride = 0;  // every group is copied to the same place
        if (backward_data_) plans.backward = plan_conv_backward_data(shape_, rows, gemm_.tile_rows);
        plans_.emplace(rows, std::move(plans));
    }

    void prepare(Stream& stream, const float* w) override {
        run_parts(cpu_stream(stream), shape_.weights(), [&](int part, int parts) {
            layout_.pack(gemm_, w, false, part, parts, floats(packed_forward_));
            if (backward_data_) layout_.pack(gemm_, w, true, part, parts, floats(packed_backward_));
        });
    }

    void forward(Stream& stream, int rows, const float* x, const float* bias, float* y) override {
        if (rows == 0) return;
        const GemmPlan& plan = plans_of(rows).forward;
        if (bordered_) {
            forward_bordered(cpu_stream(stream), plan, rows, x, {y, bias, relu_});
        } else {
            run(cpu_stream(stream), plan, rows, x, floats(packed_forward_), group_in_, group_out_, {y, bias, relu_});
        }
    }

    void backward_data(Stream& stream, int rows, const float* dy, float* dx) override {
        if (rows == 0) return;
        run(cpu_stream(stream), plans_of(rows).backward, rows, dy, floats(packed_backward_), group_out_, group_in_,
            {dx, nullptr, false});
    }

    int64_t leaf_elements() const override { return layout_.leaf_elements(); }

    void backward_weights(Stream& stream, int rows, const float* x, const float* dy, float* leaf) override {
        CpuStream& cpu = cpu_stream(stream);
        const int64_t positions = int64_t{rows} * shape_.out_h() * shape_.out_w();
        if (rows == 0) std::fill_n(leaf, leaf_elements(), 0.0F);
        run_parts(cpu, terms(rows), [&](int part, int parts) {
            const IndexRange columns = part_of(shape_.out_channels, part, parts, 16);
            if (shape_.bias) {
                wgrad_.channel_sums(positions, shape_.out_channels, columns, dy, leaf + layout_.bias_offset());
            }
            float* const scratch = workspace(cpu, part);
            const ConvWgradOperands operands{x, dy, rows, 0, leaf, layout_.leaf_stride(), scratch};
            if (depthwise_) {
                const auto taps = static_cast<int64_t>(wgrad_plan_.taps.size());
                wgrad_.depthwise(wgrad_plan_, operands, shape_.in.channels, part_of(taps, part, parts));
            } else if (bordered_) {
                backward_weights_bordered(operands, part, parts, scratch + wgrad_scratch());
            } else {
                backward_weights_of_groups(operands, part, parts);
            }
        });
    }

    void store_gradient(Stream& stream, const float* leaf, float* dw, float* db) override {
        run_parts(cpu_stream(stream), shape_.weights(),
                  [&](int part, int parts) { layout_.store_gradient(leaf, part, parts, dw, db); });
    }

  private:
    struct Plans {
        GemmPlan forward, backward;
    };

    static float* floats(const CpuMemory& memory) { return reinterpret_cast<float*>(memory.data()); }
    float* workspace(CpuStream& stream, int part) const {
        return context_.float_workspace(stream.workspace_index(part));
    }
    void reserve(int64_t samples) {
        context_.reserve_workspace(
            static_cast<std::size_t>(wgrad_scratch() + samples * bordered_in(shape_).elements()) * sizeof(float));
    }
    /// Floats at the start of a workspace that the weight gradient's kernels use, a copy with a border behind them.
    int64_t wgrad_scratch() const { return depthwise_ ? 0 : (wgrad_.scratch_floats(wgrad_plan_) + 15) / 16 * 16; }
    int64_t terms(int rows) const { return rows * shape_.out().elements() * (shape_.weights() / shape_.out_channels); }

    const Plans& plans_of(int rows) const {
        const auto found = plans_.find(rows);
        if (found == plans_.end())
            fail(ErrorKind::kRuntime, "convolution: run with {} rows, which plan_rows was not told of", rows);
        return found->second;
    }

    // Forward or data gradient; `read` and `written`: channels of a group in what is read and what is written.
    void run(CpuStream& stream, const GemmPlan& plan, int rows, const float* a, const float* packed, int64_t read,
             int64_t written, const GemmOutput& out) const {
        run_parts(stream, terms(rows), [&](int part, int parts) {
            if (depthwise_) {
                depthwise_kernels_.run(plan, shape_.in.channels, a, packed, out, part_of(plan.tiles(), part, parts));
                return;
            }
            const int width = gemm_.panel_width(plan.n);
            const GemmShare share = gemm_share(plan.tiles(), gemm_.panels(plan.n), part, parts);
            const int64_t panel_stride = int64_t{plan.k} * width;
            for (int64_t g = 0; g < shape_.groups; ++g) {
                const GemmPanels panels{packed + g * gemm_.panels(plan.n) * panel_stride, width, panel_stride};
                run_gemm(gemm_, plan, a + g * read, panels,
                         {out.c + g * written, out.bias == nullptr ? nullptr : out.bias + g * written, out.relu},
                         share);
            }
        });
    }

    void forward_bordered(CpuStream& stream, const GemmPlan& plan, int rows, const float* x,
                          const GemmOutput& out) const {
        const int width = gemm_.panel_width(plan.n);
        const GemmPanels panels{floats(packed_forward_), width, int64_t{plan.k} * width};
        const auto per_group = static_cast<int64_t>(plan.full.tiles.size());
        const int64_t groups = (rows + plan.group_samples - 1) / plan.group_samples;
        run_parts(stream, terms(rows), [&](int part, int parts) {
            const IndexRange range = part_of(groups, part, parts);
            for (int64_t g = range.begin; g < range.end; ++g) {
                const int64_t first = g * plan.group_samples;
                float* copy = workspace(stream, part);
                copy_with_border(shape_, x + first * shape_.in.elements(),
                                 std::min<int64_t>(plan.group_samples, rows - first), copy);
                run_gemm(gemm_, plan, copy, panels, out,
                         {{g * per_group, g < plan.full_groups ? (g + 1) * per_group : plan.tiles()},
                          {0, gemm_.panels(plan.n)}});
            }
        });
    }

    // Units of work are (group of channels, tile).
    void backward_weights_of_groups(const ConvWgradOperands& operands, int part, int parts) const {
        const int64_t tiles = wgrad_.tiles(wgrad_plan_);
        const IndexRange units = part_of(shape_.groups * tiles, part, parts);
        for (int64_t unit = units.begin; unit < units.end;) {
            const int64_t g = unit / tiles, end = std::min(units.end, (g + 1) * tiles);
            ConvWgradOperands of_group = operands;
            of_group.x += g * group_in_;
            of_group.dy += g * group_out_;
            of_group.gradient += g * wgrad_plan_.gradient_rows() * operands.stride;
            wgrad_.run(wgrad_plan_, of_group, {unit - g * tiles, end - g * tiles},
                       {0, wgrad_plan_.blocks(operands.samples)});
            unit = end;
        }
    }

    // Each thread copies all samples, a few at a time, and works on its own tiles.
    void backward_weights_bordered(ConvWgradOperands operands, int part, int parts, float* copy) const {
        const IndexRange tiles = part_of(wgrad_.tiles(wgrad_plan_), part, parts);
        const int64_t rows = operands.samples * shape_.out_h(), blocks = wgrad_plan_.blocks(operands.samples);
        const float* const x = operands.x;
        for (int64_t block = 0; block < blocks && tiles.begin < tiles.end; block += wgrad_blocks_) {
            const int64_t end = std::min(blocks, block + wgrad_blocks_);
            const int64_t first = block * wgrad_plan_.rows_per_block / shape_.out_h();
            const int64_t last = (std::min(rows, end * wgrad_plan_.rows_per_block) - 1) / shape_.out_h();
            copy_with_border(shape_, x + first * shape_.in.elements(), last - first + 1, copy);
            operands.x = copy;
            operands.first_sample = first;
            wgrad_.run(wgrad_plan_, operands, tiles, {block, end});
        }
    }

    CpuContext& context_;
    ConvShape shape_;
    int64_t group_in_, group_out_;
    bool relu_, backward_data_;
    bool depthwise_, few_channels_, bordered_;
    const GemmKernels& gemm_;
    const ConvWgradKernels& wgrad_;
    const DepthwiseKernels& depthwise_kernels_;
    ConvWgradPlan wgrad_plan_;
    ConvLayout layout_;
    int64_t wgrad_blocks_ = 0;  // copied with their border at a time
    std::map<int, Plans> plans_;
    CpuMemory packed_forward_, packed_backward_;
};

}  // namespace

std::unique_ptr<Conv> make_cpu_conv(CpuContext& context, const ConvShape& shape, bool relu, bool backward_data) {
    check_conv_shape(shape);
    if (context.isa() == Isa::kScalar) return make_scalar_conv(shape, relu);
    return std::make_unique<CpuConv>(context, shape, relu, backward_data);
}

}  // namespace lockstep

#include "cuda/backend/conv.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "backend/conv_shape.hpp"
#include "core/error.hpp"
#include "cuda/access.h"
#include "cuda/backend/conv_plan.hpp"
#include "cuda/backend/stream_scratch.hpp"
#include "cuda/kernels/channel_sums.h"

namespace lockstep {
namespace {

template <class T>
std::unique_ptr<Buffer> to_device(CudaContext& context, const std::vector<T>& table) {
    const std::size_t bytes = table.size() * sizeof(T);
    if (bytes == 0) return nullptr;
    const auto host = context.allocate_host(bytes);
    std::memcpy(host->data(), table.data(), bytes);
    auto device = context.allocate(bytes);
    const cudaStream_t stream = context.main().get();
    CUDA_CHECK(cudaMemcpyAsync(device->data(), host->data(), bytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return device;
}

template <class T>
const T* table_of(const std::unique_ptr<Buffer>& memory) {
    return memory == nullptr ? nullptr : reinterpret_cast<const T*>(memory->data());
}

// A pass with its tables and its packed weights in device memory.
class PassOnDevice {
  public:
    PassOnDevice(CudaContext& context, const ConvShape& shape, bool backward)
        : backward_(backward), direct_(conv_is_direct(shape)), taps_of_kernel_(shape.kernel_h * shape.kernel_w) {
        const ConvPassPlan plan = plan_conv_pass(shape, backward, direct_);
        pass_ = plan.pass;
        classes_ = to_device(context, plan.classes);
        blocks_ = to_device(context, plan.blocks);
        taps_ = to_device(context, plan.taps);
        tap_places_ = to_device(context, plan.tap_places);
        const auto floats = static_cast<std::size_t>(conv_packed_elements(pass_, direct_));
        weights_ = context.allocate(std::max<std::size_t>(floats, 1) * sizeof(float));
        nonfinite_ = context.allocate(sizeof(int));
    }

    const ConvPass& pass() const { return pass_; }
    ConvTables tables() const {
        return {table_of<ConvClass>(classes_), table_of<int2>(blocks_), table_of<int4>(taps_)};
    }

    void pack(const float* w, cudaStream_t stream) {
        conv_pack(pass_, direct_, backward_, taps_of_kernel_, table_of<int>(tap_places_), w, weights_->floats(),
                  reinterpret_cast<int*>(nonfinite_->data()), stream);
    }
    void run(ConvTile tile, const ConvGather& gather, cudaStream_t stream) const {
        const ConvPacked packed{weights_->floats(), table_of<int>(nonfinite_)};
        if (direct_) {
            conv_gather_direct(pass_, tables(), packed, gather, stream);
        } else {
            conv_gather(tile, pass_, tables(), packed, gather, stream);
        }
    }

  private:
    bool backward_, direct_;
    int taps_of_kernel_;
    ConvPass pass_;
    std::unique_ptr<Buffer> classes_, blocks_, taps_, tap_places_;
    std::unique_ptr<Buffer> weights_, nonfinite_;
};

// A leaf is [kh][kw][in/groups][out], then the bias gradient, if there is a bias.
class CudaConv final : public Conv {
  public:
    CudaConv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data, const ConvTuning& tuning)
        : context_(context),
          scratch_(StreamScratch::of(context)),
          shape_(shape),
          relu_(relu),
          tuning_(tuning),
          forward_(context, shape, false) {
        if (backward_data) backward_ = std::make_unique<PassOnDevice>(context, shape, true);
    }

    void plan_rows(int rows) override {
        if (rows < 1 || plans_.contains(rows)) return;
        check_conv_rows(shape_, rows);
        const int multiprocessors = context_.properties().multiProcessorCount;
        const auto tile_of = [&](const ConvPass& pass) {
            return tuning_.tile.value_or(choose_conv_tile(int64_t{rows} * pass.class_pixels, pass.columns,
                                                          int64_t{pass.classes} * pass.groups, multiprocessors));
        };
        Plan plan{tile_of(forward_.pass()), ConvTile::k32x32,
                  plan_conv_weights(shape_, rows, multiprocessors, tuning_.most_part_floats)};
        if (backward_ != nullptr) plan.backward = tile_of(backward_->pass());
        plan.weights.tile = tuning_.tile.value_or(plan.weights.tile);
        plan.weights.in_order = tuning_.weights_in_order.value_or(plan.weights.in_order);
        const int64_t parts = plan.weights.in_order ? 0 : plan.weights.blocks_at_once * shape_.weights();
        plan.scratch = std::max(parts, channel_partials(positions(rows), shape_.out_channels));
        scratch_.reserve(plan.scratch + (shape_.bias ? 0 : shape_.out_channels));
        plans_.emplace(rows, plan);
    }

    void prepare(Stream& stream, const float* w) override {
        forward_.pack(w, cuda_stream(stream));
        if (backward_ != nullptr) backward_->pack(w, cuda_stream(stream));
    }

    void forward(Stream& stream, int rows, const float* x, const float* bias, float* y) override {
        if (rows == 0) return;
        forward_.run(plan_of(rows).forward, {rows, x, bias, relu_, y}, cuda_stream(stream));
    }

    void backward_data(Stream& stream, int rows, const float* dy, float* dx) override {
        if (rows == 0) return;
        backward_->run(plan_of(rows).backward, {rows, dy, nullptr, false, dx}, cuda_stream(stream));
    }

    int64_t leaf_elements() const override { return shape_.weights() + (shape_.bias ? shape_.out_channels : 0); }

    void backward_weights(Stream& stream, int rows, const float* x, const float* dy, float* leaf) override {
        const cudaStream_t on = cuda_stream(stream);
        if (rows == 0) {
            CUDA_CHECK(cudaMemsetAsync(leaf, 0, static_cast<std::size_t>(leaf_elements()) * sizeof(float), on));
            return;
        }
        const ConvWeightsPlan& plan = plan_of(rows).weights;
        float* const scratch = scratch_.of(stream);
        // Without a bias, too: it says where dy is not finite.
        float* const bias_gradient = shape_.bias ? leaf + shape_.weights() : scratch + plan_of(rows).scratch;
        channel_sums(positions(rows), shape_.out_channels, dy, scratch, bias_gradient, on);
        ConvWeights run{rows, plan.rows_per_block, 0, plan.blocks, x, dy, bias_gradient, plan.in_order, leaf};
        if (plan.in_order) return weights_of_blocks(plan, run, on);
        run.gradient = scratch;
        for (; run.first_block < plan.blocks; run.first_block += plan.blocks_at_once) {
            run.blocks = std::min(plan.blocks_at_once, plan.blocks - run.first_block);
            weights_of_blocks(plan, run, on);
            conv_add_blocks(run.blocks, shape_.weights(), run.first_block == 0, scratch, leaf, on);
        }
    }

    void store_gradient(Stream& stream, const float* leaf, float* dw, float* db) override {
        conv_store_gradient(shape_.in.channels / shape_.groups, shape_.out_channels, shape_.kernel_h * shape_.kernel_w,
                            leaf, dw, db, cuda_stream(stream));
    }

  private:
    struct Plan {
        ConvTile forward, backward;
        ConvWeightsPlan weights;
        int64_t scratch = 0;  // floats for parts of sums; behind them the bias gradient that no leaf has
    };

    int64_t positions(int rows) const { return int64_t{rows} * shape_.out_h() * shape_.out_w(); }

    const Plan& plan_of(int rows) const {
        const auto found = plans_.find(rows);
        if (found == plans_.end())
            fail(ErrorKind::kRuntime, "convolution: run with {} rows, which plan_rows was not told of", rows);
        return found->second;
    }

    void weights_of_blocks(const ConvWeightsPlan& plan, const ConvWeights& run, cudaStream_t stream) const {
        if (conv_is_direct(shape_)) {
            conv_weights_direct(forward_.pass(), forward_.tables(), run, stream);
        } else {
            conv_weights(plan.tile, forward_.pass(), forward_.tables(), run, stream);
        }
    }

    CudaContext& context_;
    StreamScratch& scratch_;
    ConvShape shape_;
    bool relu_;
    ConvTuning tuning_;
    PassOnDevice forward_;
    std::unique_ptr<PassOnDevice> backward_;
    std::map<int, Plan> plans_;
};

}  // namespace

std::unique_ptr<Conv> make_cuda_conv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data,
                                     const ConvTuning& tuning) {
    check_conv_shape(shape);
    check_conv_rows(shape, 1);
    return std::make_unique<CudaConv>(context, shape, relu, backward_data, tuning);
}

std::unique_ptr<Conv> make_cuda_conv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data) {
    return make_cuda_conv(context, shape, relu, backward_data, {});
}

}  // namespace lockstep

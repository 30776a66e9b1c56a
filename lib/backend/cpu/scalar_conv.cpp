#include "backend/cpu/scalar_conv.hpp"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_context.hpp"
#include "backend/cpu/reference_gemm.hpp"

namespace lockstep {
namespace {

// Leaves hold W's order, then the bias, if there is one.
class ScalarConv final : public Conv {
  public:
    ScalarConv(const ConvShape& shape, bool relu)
        : shape_(shape), relu_(relu), weights_(static_cast<std::size_t>(shape.weights()) * sizeof(float)) {}

    void plan_rows(int) override {}

    void prepare(Stream&, const float* w) override { std::memcpy(weights_.data(), w, weights_.bytes()); }

    void forward(Stream& stream, int rows, const float* x, const float* bias, float* y) override {
        for_rows(stream, rows, [&](int64_t n, int count) {
            reference_conv_forward(shape_, count, x + n * shape_.in.elements(), weights(), bias, relu_,
                                   y + n * shape_.out().elements());
        });
    }

    void backward_data(Stream& stream, int rows, const float* dy, float* dx) override {
        for_rows(stream, rows, [&](int64_t n, int count) {
            reference_conv_backward_data(shape_, count, dy + n * shape_.out().elements(), weights(),
                                         dx + n * shape_.in.elements());
        });
    }

    int64_t leaf_elements() const override { return shape_.weights() + (shape_.bias ? shape_.out_channels : 0); }

    void backward_weights(Stream& stream, int rows, const float* x, const float* dy, float* leaf) override {
        cpu_stream(stream).parallel([&](int part, int parts) {
            reference_conv_weight_gradient(shape_, rows, part_of(shape_.out_channels, part, parts), x, dy, leaf);
        });
        if (!shape_.bias) return;
        reference_channel_sums(int64_t{rows} * shape_.out_h() * shape_.out_w(), shape_.out_channels, dy,
                               leaf + shape_.weights());
    }

    void store_gradient(Stream&, const float* leaf, float* dw, float* db) override {
        std::copy_n(leaf, shape_.weights(), dw);
        if (shape_.bias && db != nullptr) std::copy_n(leaf + shape_.weights(), shape_.out_channels, db);
    }

  private:
    const float* weights() const { return reinterpret_cast<const float*>(weights_.data()); }

    void for_rows(Stream& stream, int rows, FunctionRef<void(int64_t row, int count)> body) {
        cpu_stream(stream).parallel([&](int part, int parts) {
            const IndexRange range = part_of(rows, part, parts);
            body(range.begin, static_cast<int>(range.end - range.begin));
        });
    }

    ConvShape shape_;
    bool relu_;
    CpuMemory weights_;
};

}  // namespace

std::unique_ptr<Conv> make_scalar_conv(const ConvShape& shape, bool relu) {
    return std::make_unique<ScalarConv>(shape, relu);
}

}  // namespace lockstep

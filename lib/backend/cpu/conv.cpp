// The plans of a convolution: which way its sums are run on this instruction set.
#include "backend/cpu/conv.hpp"

#include <algorithm>
#include <cstring>

#include "backend/cpu/reference_gemm.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

void check(const ConvShape& s) {
    if (s.in.elements() < 1 || s.out_channels < 1 || s.kernel_h < 1 || s.kernel_w < 1 || s.stride_h < 1 ||
        s.stride_w < 1 || s.dilation_h < 1 || s.dilation_w < 1 || s.groups < 1 ||
        std::min({s.pad_top, s.pad_bottom, s.pad_left, s.pad_right}) < 0) {
        fail(ErrorKind::kUsage,
             "convolution: channels, kernel, stride, dilation and groups must be at least 1, padding at least 0");
    }
    if (s.in.channels % s.groups != 0 || s.out_channels % s.groups != 0) {
        fail(ErrorKind::kUsage, "convolution: {} groups do not divide {} input and {} output channels", s.groups,
             s.in.channels, s.out_channels);
    }
    const int span_h = s.dilation_h * (s.kernel_h - 1) + 1, span_w = s.dilation_w * (s.kernel_w - 1) + 1;
    const int height = s.in.height + s.pad_top + s.pad_bottom, width = s.in.width + s.pad_left + s.pad_right;
    if (height < span_h || width < span_w) {
        fail(ErrorKind::kUsage,
             "convolution: a kernel that spans {} x {} does not fit an image of {} x {}, padding included", span_h,
             span_w, height, width);
    }
}

// The scalar instruction set. Leaves hold W's order, then the bias.
class ReferenceConv final : public Conv {
  public:
    explicit ReferenceConv(const ConvShape& shape, bool relu)
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

    int64_t leaf_elements() const override { return shape_.weights() + shape_.out_channels; }

    void backward_weights(Stream& stream, int rows, const float* x, const float* dy, float* leaf) override {
        cpu_stream(stream).parallel([&](int part, int parts) {
            reference_conv_weight_gradient(shape_, rows, part_of(shape_.out_channels, part, parts), x, dy, leaf);
        });
        reference_channel_sums(int64_t{rows} * shape_.out_h() * shape_.out_w(), shape_.out_channels, dy,
                               leaf + shape_.weights());
    }

    void store_gradient(Stream&, const float* leaf, float* dw, float* db) override {
        std::copy_n(leaf, shape_.weights(), dw);
        if (db != nullptr) std::copy_n(leaf + shape_.weights(), shape_.out_channels, db);
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

std::unique_ptr<Conv> make_cpu_conv(CpuContext&, const ConvShape& shape, bool relu, bool) {
    check(shape);
    return std::make_unique<ReferenceConv>(shape, relu);
}

}  // namespace lockstep

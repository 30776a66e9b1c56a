// Convolutions by cuDNN, a shard at a time. Filters are kept with channels fastest, in the format of the products, for
// a whole step; a shard's gradient (a leaf) has them in the same order in fp32. Bias, relu and the bias gradient are
// own kernels. Padding that differs between opposite sides becomes a border of zeros, since cuDNN does not know it.
#include "core/error.hpp"
#include "cuda/backend/vendor.hpp"

#ifdef LOCKSTEP_HAVE_CUDNN

#include <algorithm>
#include <map>

#include "backend/conv_shape.hpp"
#include "cuda/access.h"
#include "cuda/backend/vendor_dnn.hpp"
#include "cuda/kernels/bias.h"
#include "cuda/kernels/channel_sums.h"

namespace lockstep {
namespace {

/// Whether padding each side as its first side is padded gives the same output: rows that no kernel reaches do not
/// count.
bool pads_evenly(const ConvShape& shape) {
    ConvShape even = shape;
    even.pad_bottom = shape.pad_top;
    even.pad_right = shape.pad_left;
    return even.out() == shape.out();
}

class VendorConv final : public Conv {
  public:
    VendorConv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data)
        : vendor_(Vendor::of(context)),
          precision_(context.options().precision),
          format_(number_format(precision_)),
          shape_(shape),
          inner_(shape),
          relu_(relu),
          backward_data_(backward_data),
          bordered_(!pads_evenly(shape)),
          bias_offset_(vendor_padded(shape.weights())) {
        border_ = {shape.in.height, shape.in.width, shape.in.channels};
        if (bordered_) {
            border_ = {shape.in.height,  shape.in.width, shape.in.channels, shape.pad_top,
                       shape.pad_bottom, shape.pad_left, shape.pad_right};
            inner_.in.height += shape.pad_top + shape.pad_bottom;
            inner_.in.width += shape.pad_left + shape.pad_right;
            inner_.pad_top = inner_.pad_left = 0;
        }
        inner_.pad_bottom = inner_.pad_top;
        inner_.pad_right = inner_.pad_left;
        filters_ = context.allocate(static_cast<std::size_t>(shape.weights()) * bytes_of(format_));
    }

    void plan_rows(int rows) override {
        if (rows == 0 || plans_.count(rows) != 0) return;
        const auto plan =
            plans_.try_emplace(rows, DnnHandle::of(vendor_.main()), inner_, rows, precision_, backward_data_);
        vendor_.add_algorithm(plan.first->second.algorithms());
        for (const auto& stream : vendor_.streams()) reserve(*stream, rows, plan.first->second);
    }

    void prepare(Stream& stream, const float* w) override {
        pack_filters(format_, shape_.out_channels, shape_.in.channels / shape_.groups, taps(), w, filters_->data(),
                     cuda_stream(stream));
    }

    void forward(Stream& stream, int rows, const float* x, const float* bias, float* y) override {
        VendorStream& on = vendor_.on(stream);
        const DnnConvolution& plan = plans_.at(rows);
        void* const product = result(on, y, rows * shape_.out().elements(), false);
        plan.forward(DnnHandle::of(on), input(on, rows, x), filters_->data(), product, workspace(on, plan));
        finish_product(format_, int64_t{rows} * positions(), shape_.out_channels, product, bias, relu_, y, on.get());
    }

    void backward_data(Stream& stream, int rows, const float* dy, float* dx) override {
        VendorStream& on = vendor_.on(stream);
        const DnnConvolution& plan = plans_.at(rows);
        void* const product = result(on, dx, rows * border_.outer_elements(), bordered_);
        plan.backward_data(DnnHandle::of(on), output(on, rows, dy), filters_->data(), product, workspace(on, plan));
        if (bordered_) {
            remove_border(format_, rows, border_, product, dx, on.get());
        } else if (product != dx) {
            widen(format_, rows * border_.outer_elements(), product, dx, on.get());
        }
    }

    int64_t leaf_elements() const override {
        return bias_offset_ + (shape_.bias ? vendor_padded(shape_.out_channels) : 0);
    }

    void backward_weights(Stream& stream, int rows, const float* x, const float* dy, float* leaf) override {
        VendorStream& on = vendor_.on(stream);
        const DnnConvolution& plan = plans_.at(rows);
        void* const product = result(on, leaf, shape_.weights(), false);
        plan.backward_filters(DnnHandle::of(on), input(on, rows, x), output(on, rows, dy), product,
                              workspace(on, plan));
        if (product != leaf) widen(format_, shape_.weights(), product, leaf, on.get());
        if (!shape_.bias) return;
        const int64_t sum_rows = int64_t{rows} * positions();
        channel_sums(sum_rows, shape_.out_channels, dy,
                     on.floats(VendorArea::kPartials, channel_partials(sum_rows, shape_.out_channels)),
                     leaf + bias_offset_, on.get());
    }

    void store_gradient(Stream& stream, const float* leaf, float* dw, float* db) override {
        unpack_filters(shape_.out_channels, shape_.in.channels / shape_.groups, taps(), leaf, dw, cuda_stream(stream));
        if (db != nullptr) {
            widen(NumberFormat::kFp32, shape_.out_channels, leaf + bias_offset_, db, cuda_stream(stream));
        }
    }

  private:
    int taps() const { return shape_.kernel_h * shape_.kernel_w; }
    int64_t positions() const { return int64_t{shape_.out_h()} * shape_.out_w(); }

    void reserve(VendorStream& on, int rows, const DnnConvolution& plan) {
        const int64_t x = rows * border_.outer_elements(), y = rows * shape_.out().elements();
        const auto bytes = [&](int64_t n) { return static_cast<std::size_t>(n) * bytes_of(format_); };
        DnnHandle::of(on);
        on.area(VendorArea::kFirst, bytes(x));
        on.area(VendorArea::kSecond, bytes(y));
        on.area(VendorArea::kResult, bytes(std::max({x, y, shape_.weights()})));
        if (shape_.bias) on.floats(VendorArea::kPartials, channel_partials(rows * positions(), shape_.out_channels));
        workspace(on, plan);
    }

    const void* input(VendorStream& on, int rows, const float* x) const {
        if (!bordered_) return on.operand(VendorArea::kFirst, format_, rows * border_.outer_elements(), x);
        void* const to =
            on.area(VendorArea::kFirst, static_cast<std::size_t>(rows * border_.outer_elements()) * bytes_of(format_));
        add_border(format_, rows, border_, x, to, on.get());
        return to;
    }
    const void* output(VendorStream& on, int rows, const float* dy) const {
        return on.operand(VendorArea::kSecond, format_, rows * shape_.out().elements(), dy);
    }
    // Where cuDNN writes n elements meant for `to`.
    void* result(VendorStream& on, float* to, int64_t n, bool elsewhere) const {
        if (!elsewhere && format_ == NumberFormat::kFp32 && is_vendor_aligned(to)) return to;
        return on.area(VendorArea::kResult, static_cast<std::size_t>(n) * bytes_of(format_));
    }
    static DnnWorkspace workspace(VendorStream& on, const DnnConvolution& plan) {
        if (plan.workspace() == 0) return {};
        return {on.area(VendorArea::kWorkspace, plan.workspace()), plan.workspace()};
    }

    Vendor& vendor_;
    CudaPrecision precision_;
    NumberFormat format_;
    ConvShape shape_;
    ConvShape inner_;  // as cuDNN is told: evenly padded
    bool relu_, backward_data_, bordered_;
    BorderShape border_;
    int64_t bias_offset_;  // in a leaf: weights, then bias, each aligned
    std::map<int, DnnConvolution> plans_;
    std::unique_ptr<Buffer> filters_;
};

}  // namespace

std::unique_ptr<Conv> make_vendor_conv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data) {
    check_conv_shape(shape);
    return std::make_unique<VendorConv>(context, shape, relu, backward_data);
}

}  // namespace lockstep

#else

namespace lockstep {

std::string dnn_version() {
    return "none";
}

std::unique_ptr<Conv> make_vendor_conv(CudaContext&, const ConvShape&, bool, bool) {
    fail(ErrorKind::kUsage,
         "convolutions of device.arithmetic = \"vendor\" need cuDNN, and this Lockstep was built without it: use "
         "device.arithmetic = \"defined\", or build where cudnn.h is found");
}

}  // namespace lockstep

#endif

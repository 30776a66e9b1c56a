// What cuDNN takes for each convolution of a model, and how long it takes.
#include "core/error.hpp"
#include "test/cuda/figures/figures.hpp"

#if defined(LOCKSTEP_HAVE_CUDNN) || defined(LOCKSTEP_CUDA_EMULATION)

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cuda/backend/vendor_dnn.hpp"
#include "nn/zoo.hpp"

namespace lockstep::figures {
namespace {

ModelSpec spec_of(const std::string& model) {
    ModelSpec spec;
    spec.name = model;
    spec.input = {28, 28, 1};
    if (model == "resnet20") spec.input = {32, 32, 3};
    if (model == "resnet50") spec.input = {224, 224, 3};
    if (model == "resnet50") spec.classes = 1000;
    return spec;
}

/// The three passes of one convolution on zeros: cuDNN's algorithms take as long whatever they multiply.
class Passes {
  public:
    Passes(CudaContext& context, const ConvShape& shape, int rows, bool backward_data, int repetitions)
        : vendor_(Vendor::of(context).main()),
          handle_(DnnHandle::of(vendor_)),
          convolution_(handle_, shape, rows, context.options().precision, backward_data),
          repetitions_(repetitions) {
        if (repetitions == 0) return;
        const std::size_t size = bytes_of(number_format(context.options().precision));
        const auto bytes = [&](int64_t elements) { return static_cast<std::size_t>(elements) * size; };
        x_ = context.allocate(bytes(rows * shape.in.elements()));
        y_ = context.allocate(bytes(rows * shape.out().elements()));
        filters_ = context.allocate(bytes(shape.weights()));
        const std::size_t workspace = convolution_.workspace();
        if (workspace > 0) workspace_ = {vendor_.area(VendorArea::kWorkspace, workspace), workspace};
        forward_ =
            microseconds([&] { convolution_.forward(handle_, x_->data(), filters_->data(), y_->data(), workspace_); });
        if (backward_data) {
            data_ = microseconds(
                [&] { convolution_.backward_data(handle_, y_->data(), filters_->data(), x_->data(), workspace_); });
        }
        weights_ = microseconds(
            [&] { convolution_.backward_filters(handle_, x_->data(), y_->data(), filters_->data(), workspace_); });
    }

    std::string line() const {
        std::string text = convolution_.algorithms();
        if (repetitions_ > 0) text += fmt::format("; {:.0f} + {:.0f} + {:.0f} us", forward_, data_, weights_);
        return text;
    }

  private:
    template <class Pass>
    double microseconds(Pass pass) const {
        return 1e6 * seconds_of(vendor_.get(), repetitions_, pass);
    }

    VendorStream& vendor_;
    DnnHandle& handle_;
    DnnConvolution convolution_;
    int repetitions_;
    std::unique_ptr<Buffer> x_, y_, filters_;
    DnnWorkspace workspace_;
    double forward_ = 0, data_ = 0, weights_ = 0;
};

}  // namespace

bool convolutions(const std::string& model, int rows, CudaPrecision precision, int repetitions) {
    CudaOptions options;
    options.streams = 1;
    options.vendor = true;
    options.precision = precision;
    CudaContext context(options);
    bool all = true;
    std::set<std::string> seen;
    for (const LayerSpec& layer : build_model(spec_of(model)).layers) {
        if (layer.kind != LayerKind::kConv) continue;
        const ConvShape& c = layer.conv;
        const SampleShape& in = c.in;
        const std::string key = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", in.height, in.width, in.channels,
                                            c.out_channels, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.pad_top,
                                            c.pad_left, c.groups, layer.data_gradient);
        if (!seen.insert(key).second) continue;
        try {
            fmt::print("{}\n", Passes(context, c, rows, layer.data_gradient, repetitions).line());
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::kUsage) throw;
            fmt::print("{}\n", error.what());
            all = false;
        }
    }
    fmt::print("{}, {} rows, {}: {} different convolutions{}\n", model, rows, precision_name(precision), seen.size(),
               all ? ", all deterministic" : "; not all can be computed deterministically");
    return all;
}

}  // namespace lockstep::figures

#else

bool lockstep::figures::convolutions(const std::string&, int, CudaPrecision, int) {
    fail(ErrorKind::kUsage, "this build is without cuDNN");
}

#endif

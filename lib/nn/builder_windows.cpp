// The layers that look at pictures through a window: convolutions and pools. Whether a window fits, and is of a size
// that anything can be computed with, is decided before any memory depends on it.
#include "nn/builder.hpp"

namespace lockstep {
namespace {

/// Kernels keep a table of the taps, and for few channels a copy of a sample with its padding. Both are far from what a
/// picture needs, and from what a machine lacks memory for.
constexpr int64_t kMostTaps = int64_t{1} << 16;
constexpr int64_t kMostPadded = int64_t{1} << 28;  // values: a gibibyte

}  // namespace

Window Builder::fitting(const std::string& name, const char* what, const Window& window) const {
    check_picture(name, what);
    const SampleShape in = shape();
    const Window padded = window.padded_for(in);
    const int height = padded.dilation_h * (padded.kernel_h - 1) + 1,
              width = padded.dilation_w * (padded.kernel_w - 1) + 1;
    if (in.height + padded.top + padded.bottom < height || in.width + padded.left + padded.right < width) {
        refuse(name, fmt::format("{} {}x{} and gets {}", what, height, width, text(in)));
    }
    const SampleShape whole{in.height + padded.top + padded.bottom, in.width + padded.left + padded.right, in.channels};
    if (whole.elements() > kMostPadded) {
        refuse_size(name, fmt::format("{} samples of {} that are {} with their padding, and can up to {} values", what,
                                      text(in), text(whole), kMostPadded));
    }
    return padded;
}

/// Columns of a table have no neighbours, and their categories are numbers of no meaning.
void Builder::check_picture(const std::string& name, const char* what) const {
    const SampleShape in = spec_.input;
    if (spec_.columns.empty() && (in.height > 1 || in.width > 1)) return;
    const std::string table = fmt::format("a table of {} column{}", in.channels, in.channels == 1 ? "" : "s");
    if (!place_.empty()) {
        refuse(name, fmt::format("{} pictures, and the samples are {}; dense, one_hot and embedding read tables", what,
                                 table));
    }
    fail(ErrorKind::kUsage,
         "model.name: {} {} pictures (layer {}), and the samples are {}; mlp, logistic and wide_deep read tables",
         spec_.name, what, name, table);
}

int Builder::conv(const std::string& name, int channels, const Window& window) {
    return conv(name, channels, window, {.start = rules_.conv});
}

int Builder::conv(const std::string& name, int channels, const Window& window, const Weights& weights, int groups) {
    const SampleShape in = shape();
    if (int64_t{window.kernel_h} * window.kernel_w > kMostTaps) {
        refuse_size(name, fmt::format("convolves {}x{}, and a kernel can have {} taps", window.kernel_h,
                                      window.kernel_w, kMostTaps));
    }
    const Window padded = fitting(name, "convolves", window);
    if (in.channels % groups != 0 || channels % groups != 0) {
        refuse(name, fmt::format("cuts {} channels into {} channels in {} groups, which do not divide them",
                                 in.channels, channels, groups));
    }
    LayerSpec& layer = append(LayerKind::kConv, name);
    layer.conv = {.in = in,
                  .out_channels = channels,
                  .kernel_h = padded.kernel_h,
                  .kernel_w = padded.kernel_w,
                  .stride_h = padded.stride_h,
                  .stride_w = padded.stride_w,
                  .dilation_h = padded.dilation_h,
                  .dilation_w = padded.dilation_w,
                  .pad_top = padded.top,
                  .pad_bottom = padded.bottom,
                  .pad_left = padded.left,
                  .pad_right = padded.right,
                  .groups = groups};
    const int64_t taps = int64_t{padded.kernel_h} * padded.kernel_w;
    const int inner = in.channels / groups;
    parameters(layer, {channels, inner, padded.kernel_h, padded.kernel_w}, inner * taps, channels * taps, weights);
    return done(layer, layer.conv.out());
}

int Builder::conv_norm(const std::string& name, const std::string& norm, int channels, const Window& window) {
    conv(name, channels, window, {.start = rules_.conv, .bias = false});
    return batch_norm(norm);
}

int Builder::pool(const std::string& name, PoolKind kind, const Window& window) {
    const SampleShape in = shape();
    const Window padded = fitting(name, "pools", window);
    // A window that lies in the padding alone has no value.
    if (padded.top >= padded.kernel_h || padded.bottom >= padded.kernel_h || padded.left >= padded.kernel_w ||
        padded.right >= padded.kernel_w) {
        refuse(name, fmt::format("pools {}x{} with as much padding", padded.kernel_h, padded.kernel_w));
    }
    if (kind == PoolKind::kMax && padded.kernel_h * padded.kernel_w > 256) {
        refuse(name,
               fmt::format("takes the maximum of {}x{} values, and can of 256", padded.kernel_h, padded.kernel_w));
    }
    LayerSpec& layer = append(LayerKind::kPool, name);
    layer.pool = {.kind = kind,
                  .in = in,
                  .kernel_h = padded.kernel_h,
                  .kernel_w = padded.kernel_w,
                  .stride_h = padded.stride_h,
                  .stride_w = padded.stride_w,
                  .pad_top = padded.top,
                  .pad_bottom = padded.bottom,
                  .pad_left = padded.left,
                  .pad_right = padded.right};
    return done(layer, layer.pool.out());
}

int Builder::max_pool(const std::string& name, const Window& window) {
    return pool(name, PoolKind::kMax, window);
}
int Builder::average_pool(const std::string& name, const Window& window) {
    return pool(name, PoolKind::kAverage, window);
}
int Builder::global_pool(const std::string& name, PoolKind kind) {
    const SampleShape in = shape();
    return pool(name, kind, {.kernel_h = in.height, .kernel_w = in.width, .stride_h = in.height, .stride_w = in.width});
}

}  // namespace lockstep

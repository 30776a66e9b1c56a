#include "backend/cpu/reference_gemm.hpp"

#include <algorithm>

#include "backend/cpu/fma_loops.hpp"

namespace lockstep {
namespace {

// total = +0, then + one fma chain for every block of `length` index positions.
class BlockedSum {
  public:
    explicit BlockedSum(int64_t length) : length_(length), limit_(length) {}
    LOCKSTEP_ALWAYS_INLINE void add(int64_t index, float a, float b) {
        if (index >= limit_) {
            close();
            limit_ = (index / length_ + 1) * length_;
        }
        chain_ = std::fma(a, b, chain_);
    }
    LOCKSTEP_ALWAYS_INLINE float total() {
        close();
        return total_;
    }

  private:
    LOCKSTEP_ALWAYS_INLINE void close() {
        total_ = total_ + chain_;
        chain_ = 0;
    }
    int64_t length_;
    int64_t limit_;
    float total_ = 0;
    float chain_ = 0;
};

LOCKSTEP_ALWAYS_INLINE inline float finish(float total, const float* bias, int channel, bool relu) {
    if (bias != nullptr) total = total + bias[channel];
    return relu ? relu_of(total) : total;
}

// Runs a fold program over one element: leaf_sum(leaf) gives a shard's sum, store(root, value) takes a root's.
template <class LeafSum, class Store>
LOCKSTEP_ALWAYS_INLINE inline void fold_element(const FoldProgram& fold, LeafSum leaf_sum, Store store) {
    float stack[kMaxFoldStack];
    int depth = 0;
    for (const FoldProgram::Leaf& leaf : fold.leaves) {
        float value = leaf_sum(leaf);
        for (int add = 0; add < leaf.adds; ++add) value = stack[--depth] + value;
        if (leaf.root >= 0) {
            store(leaf.root, value);
        } else {
            stack[depth++] = value;
        }
    }
}

// The input position that tap k of output position o reads, or -1 where it lies outside the image.
LOCKSTEP_ALWAYS_INLINE inline int tap_input(int o, int stride, int pad, int k, int dilation, int size) {
    const int position = o * stride - pad + k * dilation;
    return position >= 0 && position < size ? position : -1;
}

// The output position whose tap k reads input position i, or -1 where there is none (a stride hole, or outside).
LOCKSTEP_ALWAYS_INLINE inline int tap_output(int i, int stride, int pad, int k, int dilation, int size) {
    const int shifted = i + pad - k * dilation;
    return shifted >= 0 && shifted % stride == 0 && shifted / stride < size ? shifted / stride : -1;
}

}  // namespace

void reference_dense_forward(int rows, int in, int out, const float* x, const float* w, const float* bias, bool relu,
                             float* y, int chain) {
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int64_t n = 0; n < rows; ++n) {
            for (int64_t o = 0; o < out; ++o) {
                BlockedSum sum(chain);
                for (int64_t k = 0; k < in; ++k) sum.add(k, x[n * in + k], w[o * in + k]);
                y[n * out + o] = finish(sum.total(), bias, static_cast<int>(o), relu);
            }
        }
    });
}

void reference_dense_backward_data(int rows, int in, int out, const float* dy, const float* w, float* dx, int chain) {
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int64_t n = 0; n < rows; ++n) {
            for (int64_t i = 0; i < in; ++i) {
                BlockedSum sum(chain);
                for (int64_t k = 0; k < out; ++k) sum.add(k, dy[n * out + k], w[k * in + i]);
                dx[n * in + i] = sum.total();
            }
        }
    });
}

void reference_dense_weight_gradient(const FoldProgram& fold, int in, int out, IndexRange outputs, const float* x,
                                     const float* dy, std::span<float* const> dw, int chain) {
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int64_t o = outputs.begin; o < outputs.end; ++o) {
            for (int64_t i = 0; i < in; ++i) {
                const auto shard_sum = [&](const FoldProgram::Leaf& leaf) LOCKSTEP_ALWAYS_INLINE {
                    float total = 0;
                    for (int64_t begin = leaf.begin; begin < leaf.end; begin += chain) {
                        const int64_t end = std::min<int64_t>(leaf.end, begin + chain);
                        float block = 0;
                        for (int64_t n = begin; n < end; ++n) block = std::fma(dy[n * out + o], x[n * in + i], block);
                        total = begin == leaf.begin ? block : total + block;
                    }
                    return total;
                };
                const auto store = [&](int root, float value) LOCKSTEP_ALWAYS_INLINE {
                    dw[static_cast<std::size_t>(root)][o * in + i] = value;
                };
                fold_element(fold, shard_sum, store);
            }
        }
    });
}

void reference_dense_bias_gradient(const FoldProgram& fold, int out, IndexRange outputs, const float* dy,
                                   std::span<float* const> db) {
    for (int64_t o = outputs.begin; o < outputs.end; ++o) {
        const auto shard_sum = [&](const FoldProgram::Leaf& leaf) LOCKSTEP_ALWAYS_INLINE {
            float total = 0;
            for (int64_t n = leaf.begin; n < leaf.end; ++n) total = total + dy[n * out + o];
            return total;
        };
        const auto store = [&](int root, float value)
                               LOCKSTEP_ALWAYS_INLINE { db[static_cast<std::size_t>(root)][o] = value; };
        fold_element(fold, shard_sum, store);
    }
}

void reference_conv_forward(const ConvShape& shape, int rows, const float* x, const float* w, const float* bias,
                            bool relu, float* y, int chain) {
    const int64_t height = shape.in.height, width = shape.in.width, in = shape.in.channels, out = shape.out_channels;
    const int64_t out_h = shape.out_h(), out_w = shape.out_w(), group_in = in / shape.groups,
                  group_out = out / shape.groups;
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int64_t n = 0; n < rows; ++n)
            for (int oh = 0; oh < out_h; ++oh)
                for (int ow = 0; ow < out_w; ++ow)
                    for (int64_t o = 0; o < out; ++o) {
                        BlockedSum sum(chain);
                        for (int kh = 0; kh < shape.kernel_h; ++kh) {
                            const int64_t ih =
                                tap_input(oh, shape.stride_h, shape.pad_top, kh, shape.dilation_h, shape.in.height);
                            for (int kw = 0; kw < shape.kernel_w; ++kw) {
                                const int64_t iw =
                                    tap_input(ow, shape.stride_w, shape.pad_left, kw, shape.dilation_w, shape.in.width);
                                if (ih < 0 || iw < 0) continue;
                                const float* pixel =
                                    x + ((n * height + ih) * width + iw) * in + o / group_out * group_in;
                                for (int64_t c = 0; c < group_in; ++c) {
                                    const int64_t tap = int64_t{kh} * shape.kernel_w + kw;
                                    sum.add(tap * group_in + c, pixel[c],
                                            w[((o * group_in + c) * shape.kernel_h + kh) * shape.kernel_w + kw]);
                                }
                            }
                        }
                        y[((n * out_h + oh) * out_w + ow) * out + o] =
                            finish(sum.total(), bias, static_cast<int>(o), relu);
                    }
    });
}

void reference_conv_backward_data(const ConvShape& shape, int rows, const float* dy, const float* w, float* dx,
                                  int chain) {
    const int64_t height = shape.in.height, width = shape.in.width, in = shape.in.channels, out = shape.out_channels;
    const int64_t out_h = shape.out_h(), out_w = shape.out_w(), group_in = in / shape.groups,
                  group_out = out / shape.groups;
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int64_t n = 0; n < rows; ++n)
            for (int ih = 0; ih < height; ++ih)
                for (int iw = 0; iw < width; ++iw)
                    for (int64_t i = 0; i < in; ++i) {
                        const int64_t group = i / group_in, c = i % group_in;
                        BlockedSum sum(chain);
                        for (int kh = shape.kernel_h - 1; kh >= 0; --kh) {
                            const int64_t oh = tap_output(ih, shape.stride_h, shape.pad_top, kh, shape.dilation_h,
                                                          static_cast<int>(out_h));
                            for (int kw = shape.kernel_w - 1; kw >= 0; --kw) {
                                const int64_t ow = tap_output(iw, shape.stride_w, shape.pad_left, kw, shape.dilation_w,
                                                              static_cast<int>(out_w));
                                if (oh < 0 || ow < 0) continue;
                                const float* pixel = dy + ((n * out_h + oh) * out_w + ow) * out + group * group_out;
                                const int64_t tap =
                                    int64_t{shape.kernel_h - 1 - kh} * shape.kernel_w + (shape.kernel_w - 1 - kw);
                                for (int64_t j = 0; j < group_out; ++j) {
                                    const int64_t o = group * group_out + j;
                                    sum.add(tap * group_out + j, pixel[j],
                                            w[((o * group_in + c) * shape.kernel_h + kh) * shape.kernel_w + kw]);
                                }
                            }
                        }
                        dx[((n * height + ih) * width + iw) * in + i] = sum.total();
                    }
    });
}

void reference_conv_weight_gradient(const ConvShape& shape, int rows, IndexRange outputs, const float* x,
                                    const float* dy, float* dw, int positions) {
    const int64_t height = shape.in.height, width = shape.in.width, in = shape.in.channels, out = shape.out_channels;
    const int64_t out_h = shape.out_h(), out_w = shape.out_w(), group_in = in / shape.groups,
                  group_out = out / shape.groups;
    const int rows_per_block = conv_rows_per_block(static_cast<int>(out_w), positions);
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int64_t o = outputs.begin; o < outputs.end; ++o)
            for (int64_t c = 0; c < group_in; ++c)
                for (int kh = 0; kh < shape.kernel_h; ++kh)
                    for (int kw = 0; kw < shape.kernel_w; ++kw) {
                        BlockedSum sum(rows_per_block);
                        for (int64_t row = 0; row < rows * out_h; ++row) {
                            const int64_t n = row / out_h;
                            const int64_t ih = tap_input(static_cast<int>(row % out_h), shape.stride_h, shape.pad_top,
                                                         kh, shape.dilation_h, shape.in.height);
                            if (ih < 0) continue;
                            for (int ow = 0; ow < out_w; ++ow) {
                                const int64_t iw =
                                    tap_input(ow, shape.stride_w, shape.pad_left, kw, shape.dilation_w, shape.in.width);
                                if (iw < 0) continue;
                                sum.add(row, x[((n * height + ih) * width + iw) * in + o / group_out * group_in + c],
                                        dy[(row * out_w + ow) * out + o]);
                            }
                        }
                        dw[((o * group_in + c) * shape.kernel_h + kh) * shape.kernel_w + kw] = sum.total();
                    }
    });
}

void reference_channel_sums(int64_t rows, int channels, const float* x, float* sums) {
    for (int c = 0; c < channels; ++c) {
        float total = 0;
        for (int64_t begin = 0; begin < rows; begin += kChainPositions) {
            const int64_t end = std::min<int64_t>(rows, begin + kChainPositions);
            float chain[4] = {};
            for (int64_t row = begin; row < end; ++row) chain[row % 4] = chain[row % 4] + x[row * channels + c];
            total = total + ((chain[0] + chain[1]) + (chain[2] + chain[3]));
        }
        sums[c] = total;
    }
}

}  // namespace lockstep

#include "cuda/kernels/pool.h"

#include "backend/arithmetic.hpp"
#include "backend/pool_windows.hpp"
#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

/// Where the elements of the two sides lie, and how many lines there are.
struct PoolLayout {
    PoolAxis rows, columns;
    int channels;
    int taps;  // of the whole kernel
    int64_t in_lines, out_lines;

    __device__ int64_t input(int64_t line, int iw, int c) const { return (line * columns.in + iw) * channels + c; }
    __device__ int64_t output(int64_t line, int ow, int c) const { return (line * columns.out + ow) * channels + c; }
};

PoolLayout layout_of(const PoolShape& s, int rows) {
    return {pool_rows(s),
            pool_columns(s),
            s.in.channels,
            s.kernel_h * s.kernel_w,
            int64_t{rows} * s.in.height,
            int64_t{rows} * s.out_h()};
}

/// The taps of one window: body(tap, index of the input) in (kh, kw) order.
template <class Body>
__device__ inline void for_each_tap(const PoolLayout& at, int64_t n, int oh, int ow, int c, Body body) {
    for (int kh = at.rows.first_tap(oh); kh < at.rows.end_tap(oh); ++kh) {
        const int64_t line = n * at.rows.in + oh * at.rows.stride - at.rows.pad + kh;
        for (int kw = at.columns.first_tap(ow); kw < at.columns.end_tap(ow); ++kw) {
            body(kh * at.columns.kernel + kw, at.input(line, ow * at.columns.stride - at.columns.pad + kw, c));
        }
    }
}

/// The windows that hold one input: body(tap, valid taps of the window, index of the output) in (oh, ow) order.
template <class Body>
__device__ inline void for_each_window(const PoolLayout& at, int64_t n, int ih, int iw, int c, Body body) {
    for (int oh = at.rows.first_window(ih); oh < at.rows.end_window(ih); ++oh) {
        const int valid_rows = at.rows.end_tap(oh) - at.rows.first_tap(oh);
        for (int ow = at.columns.first_window(iw); ow < at.columns.end_window(iw); ++ow) {
            const int kh = ih + at.rows.pad - oh * at.rows.stride, kw = iw + at.columns.pad - ow * at.columns.stride;
            const int valid = valid_rows * (at.columns.end_tap(ow) - at.columns.first_tap(ow));
            body(kh * at.columns.kernel + kw, valid, at.output(n * at.rows.out + oh, ow, c));
        }
    }
}

/// kWidth tap numbers at a multiple of kWidth.
template <int kWidth>
struct Taps {
    uint8_t v[kWidth];
};
template <int kWidth>
__device__ inline Taps<kWidth> load_taps(const uint8_t* address) {
    if constexpr (kWidth == 4) {
        const uchar4 four = *reinterpret_cast<const uchar4*>(address);
        return {{four.x, four.y, four.z, four.w}};
    } else {
        return {{*address}};
    }
}
template <int kWidth>
__device__ inline void store_taps(uint8_t* address, const Taps<kWidth>& taps) {
    if constexpr (kWidth == 4) {
        *reinterpret_cast<uchar4*>(address) = make_uchar4(taps.v[0], taps.v[1], taps.v[2], taps.v[3]);
    } else {
        *address = taps.v[0];
    }
}

/// The first valid tap, replaced by every strictly greater one.
template <int kWidth>
__global__ void k_max_forward(PoolLayout at, const float* __restrict__ x, float* __restrict__ y,
                              uint8_t* __restrict__ taps) {
    const int groups = at.channels / kWidth;
    for_each_item(at.out_lines, int64_t{at.columns.out} * groups, [=](int64_t line, int64_t item) {
        const int64_t n = line / at.rows.out;
        const int oh = static_cast<int>(line - n * at.rows.out);
        const int ow = static_cast<int>(item) / groups, c = (static_cast<int>(item) - ow * groups) * kWidth;
        Pack<kWidth> best;
        Taps<kWidth> winner;
        bool first = true;
        for_each_tap(at, n, oh, ow, c, [&](int tap, int64_t i) {
            const Pack<kWidth> values = load<kWidth>(x + i);
            for (int k = 0; k < kWidth; ++k) {
                if (!first && !(values.v[k] > best.v[k])) continue;
                best.v[k] = values.v[k];
                winner.v[k] = static_cast<uint8_t>(tap);
            }
            first = false;
        });
        store<kWidth>(y + at.output(line, ow, c), best);
        store_taps<kWidth>(taps + at.output(line, ow, c), winner);
    });
}

template <int kWidth>
__global__ void k_max_backward(PoolLayout at, const float* __restrict__ dy, const uint8_t* __restrict__ taps,
                               const float* __restrict__ masked_by, float* __restrict__ dx) {
    const int groups = at.channels / kWidth;
    for_each_item(at.in_lines, int64_t{at.columns.in} * groups, [=](int64_t line, int64_t item) {
        const int64_t n = line / at.rows.in;
        const int ih = static_cast<int>(line - n * at.rows.in);
        const int iw = static_cast<int>(item) / groups, c = (static_cast<int>(item) - iw * groups) * kWidth;
        Pack<kWidth> sum{};
        for_each_window(at, n, ih, iw, c, [&](int tap, int, int64_t o) {
            const Taps<kWidth> winner = load_taps<kWidth>(taps + o);
            const Pack<kWidth> gradient = load<kWidth>(dy + o);
            Pack<kWidth> mask;
            if (masked_by != nullptr) mask = load<kWidth>(masked_by + o);
            for (int k = 0; k < kWidth; ++k) {
                if (winner.v[k] == tap && (masked_by == nullptr || mask.v[k] > 0.0F)) {
                    sum.v[k] = sum.v[k] + gradient.v[k];
                }
            }
        });
        store<kWidth>(dx + at.input(line, iw, c), sum);
    });
}

/// Plain adds in tap order.
template <int kWidth>
__device__ inline Pack<kWidth> plain_sum(const PoolLayout& at, int64_t n, int oh, int ow, int c, const float* x) {
    Pack<kWidth> sum{};
    for_each_tap(at, n, oh, ow, c, [&](int, int64_t i) {
        const Pack<kWidth> values = load<kWidth>(x + i);
        for (int k = 0; k < kWidth; ++k) sum.v[k] = sum.v[k] + values.v[k];
    });
    return sum;
}

/// Blocks of kAverageBlock taps of the kernel, in each four chains (tap mod 4), ((0+1)+(2+3)), added in order.
template <int kWidth>
__device__ inline Pack<kWidth> block_sum(const PoolLayout& at, int64_t n, int oh, int ow, int c, const float* x) {
    Pack<kWidth> total{}, chain[4] = {};
    int end = kAverageBlock;
    const auto close_block = [&] {
        for (int k = 0; k < kWidth; ++k) {
            total.v[k] = total.v[k] + ((chain[0].v[k] + chain[1].v[k]) + (chain[2].v[k] + chain[3].v[k]));
            for (Pack<kWidth>& each : chain) each.v[k] = 0.0F;
        }
        end += kAverageBlock;
    };
    for_each_tap(at, n, oh, ow, c, [&](int tap, int64_t i) {
        while (tap >= end) close_block();
        const Pack<kWidth> values = load<kWidth>(x + i);
        for (int j = 0; j < 4; ++j) {  // a chain's number must be known to the compiler, or the chains leave registers
            if (tap % 4 != j) continue;
            for (int k = 0; k < kWidth; ++k) chain[j].v[k] = chain[j].v[k] + values.v[k];
        }
    });
    while (end - kAverageBlock < at.taps) close_block();
    return total;
}

template <int kWidth>
__global__ void k_average_forward(PoolLayout at, const float* __restrict__ x, float* __restrict__ y) {
    const int groups = at.channels / kWidth;
    for_each_item(at.out_lines, int64_t{at.columns.out} * groups, [=](int64_t line, int64_t item) {
        const int64_t n = line / at.rows.out;
        const int oh = static_cast<int>(line - n * at.rows.out);
        const int ow = static_cast<int>(item) / groups, c = (static_cast<int>(item) - ow * groups) * kWidth;
        const int valid =
            (at.rows.end_tap(oh) - at.rows.first_tap(oh)) * (at.columns.end_tap(ow) - at.columns.first_tap(ow));
        Pack<kWidth> sum = at.taps <= kPlainAverageTaps ? plain_sum<kWidth>(at, n, oh, ow, c, x)
                                                        : block_sum<kWidth>(at, n, oh, ow, c, x);
        for (float& v : sum.v) v = __fdiv_rn(v, static_cast<float>(valid));
        store<kWidth>(y + at.output(line, ow, c), sum);
    });
}

template <int kWidth>
__global__ void k_average_backward(PoolLayout at, const float* __restrict__ dy, const float* __restrict__ masked_by,
                                   float* __restrict__ dx) {
    const int groups = at.channels / kWidth;
    for_each_item(at.in_lines, int64_t{at.columns.in} * groups, [=](int64_t line, int64_t item) {
        const int64_t n = line / at.rows.in;
        const int ih = static_cast<int>(line - n * at.rows.in);
        const int iw = static_cast<int>(item) / groups, c = (static_cast<int>(item) - iw * groups) * kWidth;
        Pack<kWidth> sum{};
        for_each_window(at, n, ih, iw, c, [&](int, int valid, int64_t o) {
            const Pack<kWidth> gradient = load<kWidth>(dy + o);
            Pack<kWidth> mask;
            if (masked_by != nullptr) mask = load<kWidth>(masked_by + o);
            for (int k = 0; k < kWidth; ++k) {
                if (masked_by == nullptr || mask.v[k] > 0.0F) {
                    sum.v[k] = sum.v[k] + __fdiv_rn(gradient.v[k], static_cast<float>(valid));
                }
            }
        });
        store<kWidth>(dx + at.input(line, iw, c), sum);
    });
}

bool taps_aligned(const uint8_t* taps) {
    return reinterpret_cast<std::uintptr_t>(taps) % 4 == 0;
}

}  // namespace

void launch_pool_forward(const PoolShape& shape, int rows, const float* x, float* y, uint8_t* taps,
                         cudaStream_t stream) {
    if (rows == 0) return;
    const PoolLayout at = layout_of(shape, rows);
    const bool four = at.channels % 4 == 0 && all_aligned(x, y) && taps_aligned(taps);
    const LineGrid over(at.out_lines, int64_t{at.columns.out} * (at.channels / (four ? 4 : 1)));
    const int64_t from = rows * shape.in.elements(), to = rows * shape.out().elements();
    if (shape.kind == PoolKind::kMax) {
        launch(four ? k_max_forward<4> : k_max_forward<1>, over.grid, over.block, 0, stream, at, in(x, from),
               out(y, to), out(taps, to));
    } else {
        launch(four ? k_average_forward<4> : k_average_forward<1>, over.grid, over.block, 0, stream, at, in(x, from),
               out(y, to));
    }
}

void launch_pool_backward(const PoolShape& shape, int rows, const float* dy, const uint8_t* taps,
                          const float* masked_by, float* dx, cudaStream_t stream) {
    if (rows == 0) return;
    const PoolLayout at = layout_of(shape, rows);
    const bool four = at.channels % 4 == 0 && all_aligned(dy, dx, masked_by) && taps_aligned(taps);
    const LineGrid over(at.in_lines, int64_t{at.columns.in} * (at.channels / (four ? 4 : 1)));
    const int64_t from = rows * shape.out().elements(), to = rows * shape.in.elements();
    const auto mask = in(masked_by, masked_by == nullptr ? 0 : from);
    if (shape.kind == PoolKind::kMax) {
        launch(four ? k_max_backward<4> : k_max_backward<1>, over.grid, over.block, 0, stream, at, in(dy, from),
               in(taps, from), mask, out(dx, to));
    } else {
        launch(four ? k_average_backward<4> : k_average_backward<1>, over.grid, over.block, 0, stream, at, in(dy, from),
               mask, out(dx, to));
    }
}

}  // namespace lockstep

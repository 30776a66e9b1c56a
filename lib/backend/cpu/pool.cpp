// Pooling with channels on lanes: a line of the written side at a time, the window's taps in the inner loop, the
// winning tap beside its value in a register.
#include <algorithm>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/pool_plan.hpp"
#include "backend/cpu/reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pool.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

using TapTag = hn::RebindToSigned<FloatTag>;
using TapVec = hn::Vec<TapTag>;
using ByteTag = hn::Rebind<uint8_t, FloatTag>;

HWY_INLINE TapVec load_taps(const uint8_t* p, int64_t n) {
    const TapTag dt;
    const ByteTag db;
    if (n >= kLanes) return hn::PromoteTo(dt, hn::LoadU(db, p));
    uint8_t bytes[kLanes] = {};
    std::copy_n(p, n, bytes);
    return hn::PromoteTo(dt, hn::LoadU(db, bytes));
}

HWY_INLINE void store_taps(TapVec taps, uint8_t* p, int64_t n) {
    const ByteTag db;
    if (n >= kLanes) {
        hn::StoreU(hn::DemoteTo(db, taps), db, p);
        return;
    }
    uint8_t bytes[kLanes];
    hn::StoreU(hn::DemoteTo(db, taps), db, bytes);
    std::copy_n(bytes, n, p);
}

/// dy, or +0 where the pooled relu is not positive.
HWY_INLINE FloatVec load_gradient(const float* dy, const float* masked_by, int64_t at, int64_t n) {
    const FloatVec g = load(dy + at, n);
    if (masked_by == nullptr) return g;
    return hn::IfThenElseZero(hn::Gt(load(masked_by + at, n), hn::Zero(FloatTag())), g);
}

/// Calls body(n, oh, line of the output) for the units of a forward pass.
template <class Body>
HWY_INLINE void for_each_output_line(const PoolAxis& rows, int64_t begin, int64_t end, Body body) {
    int64_t n = begin / rows.out;
    int oh = static_cast<int>(begin % rows.out);
    for (int64_t line = begin; line < end; ++line) {
        body(n, oh, line);
        if (++oh == rows.out) oh = 0, ++n;
    }
}

/// The valid taps of one window; `x` is the first of them, the next line is `line` elements further.
struct Window {
    int kh0, kh1, kw0, kw1;
    const float* x;
    int64_t line;
    int channels, kernel_w;
};

template <int Vectors>
HWY_INLINE void max_of_window(const Window& w, int64_t c, int64_t count, float* y, uint8_t* taps) {
    const TapTag dt;
    FloatVec best[Vectors];
    TapVec winner[Vectors];
    for (int v = 0; v < Vectors; ++v) {
        best[v] = load(w.x + c + v * kLanes, count - v * kLanes);
        winner[v] = hn::Set(dt, w.kh0 * w.kernel_w + w.kw0);
    }
    for (int kh = w.kh0; kh < w.kh1; ++kh) {
        const float* x = w.x + (kh - w.kh0) * w.line + c;
        for (int kw = w.kw0; kw < w.kw1; ++kw, x += w.channels) {
            const TapVec tap = hn::Set(dt, kh * w.kernel_w + kw);
            for (int v = 0; v < Vectors; ++v) {
                const FloatVec value = load(x + v * kLanes, count - v * kLanes);
                const auto greater = hn::Gt(value, best[v]);
                best[v] = hn::IfThenElse(greater, value, best[v]);
                winner[v] = hn::IfThenElse(hn::RebindMask(dt, greater), tap, winner[v]);
            }
        }
    }
    for (int v = 0; v < Vectors; ++v) {
        store(best[v], y + c + v * kLanes, count - v * kLanes);
        store_taps(winner[v], taps + c + v * kLanes, count - v * kLanes);
    }
}

HWY_INLINE Window window_at(const PoolAxis& rows, const PoolAxis& columns, int channels, int64_t n, int oh, int ow,
                            const float* x) {
    Window w{rows.first_tap(oh),
             rows.end_tap(oh),
             columns.first_tap(ow),
             columns.end_tap(ow),
             nullptr,
             int64_t{columns.in} * channels,
             channels,
             columns.kernel};
    const int64_t line = n * rows.in + int64_t{oh} * rows.stride - rows.pad + w.kh0;
    w.x = x + line * w.line + (int64_t{ow} * columns.stride - columns.pad + w.kw0) * channels;
    return w;
}

void max_forward(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y, uint8_t* taps) {
    const PoolAxis rows = pool_rows(shape), columns = pool_columns(shape);
    const int channels = shape.in.channels;
    for_each_output_line(rows, begin, end, [&](int64_t n, int oh, int64_t line) LOCKSTEP_LAMBDA {
        for (int ow = 0; ow < columns.out; ++ow) {
            const Window w = window_at(rows, columns, channels, n, oh, ow, x);
            const int64_t out = (line * columns.out + ow) * channels;
            int64_t c = 0;
            for (; c + 2 * kLanes <= channels; c += 2 * kLanes) {
                max_of_window<2>(w, c, int64_t{2} * kLanes, y + out, taps + out);
            }
            for (; c + kLanes <= channels; c += kLanes) max_of_window<1>(w, c, kLanes, y + out, taps + out);
            if (c < channels) max_of_window<1>(w, c, channels - c, y + out, taps + out);
        }
    });
}

/// Blocks of kAverageBlock taps; in a block, 4 chains (tap mod 4) over the valid taps.
HWY_INLINE FloatVec block_sum(const Window& w, int64_t c, int64_t count) {
    const FloatTag d;
    FloatVec total = hn::Zero(d);
    FloatVec chain[4] = {total, total, total, total};
    int block = 0;
    const auto close_block = [&]() LOCKSTEP_LAMBDA {
        total = hn::Add(total, hn::Add(hn::Add(chain[0], chain[1]), hn::Add(chain[2], chain[3])));
        for (FloatVec& sum : chain) sum = hn::Zero(d);
    };
    for (int kh = w.kh0; kh < w.kh1; ++kh) {
        const float* x = w.x + (kh - w.kh0) * w.line + c;
        for (int kw = w.kw0; kw < w.kw1; ++kw, x += w.channels) {
            const int tap = kh * w.kernel_w + kw;
            if (tap / kAverageBlock != block) {  // blocks without a valid tap add +0: nothing
                close_block();
                block = tap / kAverageBlock;
            }
            const FloatVec value = load(x, count);
            switch (tap % 4) {
                case 0:
                    chain[0] = hn::Add(chain[0], value);
                    break;
                case 1:
                    chain[1] = hn::Add(chain[1], value);
                    break;
                case 2:
                    chain[2] = hn::Add(chain[2], value);
                    break;
                default:
                    chain[3] = hn::Add(chain[3], value);
                    break;
            }
        }
    }
    close_block();
    return total;
}

HWY_INLINE FloatVec plain_sum(const Window& w, int64_t c, int64_t count) {
    FloatVec sum = hn::Zero(FloatTag());
    for (int kh = w.kh0; kh < w.kh1; ++kh) {
        const float* x = w.x + (kh - w.kh0) * w.line + c;
        for (int kw = w.kw0; kw < w.kw1; ++kw, x += w.channels) sum = hn::Add(sum, load(x, count));
    }
    return sum;
}

void average_forward(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y) {
    const FloatTag d;
    const PoolAxis rows = pool_rows(shape), columns = pool_columns(shape);
    const int channels = shape.in.channels;
    const bool plain = shape.kernel_h * shape.kernel_w <= kPlainAverageTaps;
    for_each_output_line(rows, begin, end, [&](int64_t n, int oh, int64_t line) LOCKSTEP_LAMBDA {
        for (int ow = 0; ow < columns.out; ++ow) {
            const Window w = window_at(rows, columns, channels, n, oh, ow, x);
            const FloatVec taps = hn::Set(d, static_cast<float>((w.kh1 - w.kh0) * (w.kw1 - w.kw0)));
            float* out = y + (line * columns.out + ow) * channels;
            for_each_vector(channels, [&](int64_t c, int64_t lanes) LOCKSTEP_LAMBDA {
                const FloatVec sum = plain ? plain_sum(w, c, lanes) : block_sum(w, c, lanes);
                store(hn::Div(sum, taps), out + c, lanes);
            });
        }
    });
}

/// One input line of a backward pass: dx = chain from +0 over its windows in ascending (oh, ow) order of
/// contribution(tap, oh, ow, index of the output's channels, lanes).
template <class Contribution>
HWY_INLINE void backward_lines(const PoolShape& shape, int64_t begin, int64_t end, float* dx,
                               Contribution contribution) {
    const FloatTag d;
    const PoolAxis rows = pool_rows(shape), columns = pool_columns(shape);
    const int channels = shape.in.channels;
    int64_t n = begin / rows.in;
    int ih = static_cast<int>(begin % rows.in);
    for (int64_t line = begin; line < end; ++line) {
        float* dx_line = dx + line * columns.in * channels;
        const int oh0 = rows.first_window(ih), oh1 = rows.end_window(ih);
        for (int iw = 0; iw < columns.in; ++iw) {
            const int ow0 = columns.first_window(iw), ow1 = columns.end_window(iw);
            for_each_vector(channels, [&](int64_t c, int64_t lanes) LOCKSTEP_LAMBDA {
                FloatVec sum = hn::Zero(d);
                for (int oh = oh0; oh < oh1; ++oh) {
                    for (int ow = ow0; ow < ow1; ++ow) {
                        const int tap = (ih + rows.pad - oh * rows.stride) * columns.kernel + iw + columns.pad -
                                        ow * columns.stride;
                        const int64_t at = ((n * rows.out + oh) * columns.out + ow) * channels + c;
                        sum = hn::Add(sum, contribution(tap, oh, ow, at, lanes));
                    }
                }
                store(sum, dx_line + int64_t{iw} * channels + c, lanes);
            });
        }
        if (++ih == rows.in) ih = 0, ++n;
    }
}

/// The input lines of one line of windows that a slice holds: dx at the first of them, taps kh0 … kh1-1.
struct WindowLines {
    int kh0, kh1;
    int64_t line;  // elements from one input line to the next
    float* dx;
};

HWY_INLINE void zero_columns(const WindowLines& at, int64_t begin, int64_t end) {
    if (begin >= end) return;
    for (int kh = at.kh0; kh < at.kh1; ++kh) {
        float* x = at.dx + (kh - at.kh0) * at.line;
        std::fill(x + begin, x + end, 0.0F);
    }
}

/// Windows that do not overlap: each reads its dy and tap once and writes all its inputs, dy at the tap and +0
/// elsewhere.
HWY_INLINE void scatter_line(const PoolAxis& columns, int channels, const WindowLines& at, const float* dy,
                             const uint8_t* taps, const float* masked_by) {
    const FloatTag d;
    const TapTag dt;
    int covered = 0;  // columns written so far
    for (int ow = 0; ow < columns.out; ++ow) {
        const int kw0 = columns.first_tap(ow), kw1 = columns.end_tap(ow);
        const int iw = ow * columns.stride - columns.pad + kw0;
        zero_columns(at, int64_t{covered} * channels, int64_t{iw} * channels);
        covered = iw + kw1 - kw0;
        const int64_t out = int64_t{ow} * channels;
        for_each_vector(channels, [&](int64_t c, int64_t lanes) LOCKSTEP_LAMBDA {
            // + 0: the chain starts at +0, which makes a -0 positive
            const FloatVec g = hn::Add(load_gradient(dy, masked_by, out + c, lanes), hn::Zero(d));
            const TapVec winner = load_taps(taps + out + c, lanes);
            for (int kh = at.kh0; kh < at.kh1; ++kh) {
                float* x = at.dx + (kh - at.kh0) * at.line + int64_t{iw} * channels + c;
                for (int kw = kw0; kw < kw1; ++kw, x += channels) {
                    const auto chosen = hn::Eq(winner, hn::Set(dt, kh * columns.kernel + kw));
                    store(hn::IfThenElseZero(hn::RebindMask(d, chosen), g), x, lanes);
                }
            }
        });
    }
    zero_columns(at, int64_t{covered} * channels, at.line);
}

void max_backward_apart(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const uint8_t* taps,
                        const float* masked_by, float* dx) {
    const PoolAxis rows = pool_rows(shape), columns = pool_columns(shape);
    const int channels = shape.in.channels;
    const int64_t in_line = int64_t{columns.in} * channels, out_line = int64_t{columns.out} * channels;
    int64_t unit = begin;
    while (unit < end) {
        const int64_t n = unit / rows.in;
        const int ih = static_cast<int>(unit % rows.in);
        const int oh = rows.first_window(ih);
        WindowLines at{0, 1, in_line, dx + unit * in_line};
        if (oh < rows.end_window(ih)) {
            at.kh0 = ih + rows.pad - oh * rows.stride;
            at.kh1 = static_cast<int>(std::min<int64_t>(rows.end_tap(oh), at.kh0 + end - unit));
            const int64_t out = (n * rows.out + oh) * out_line;
            scatter_line(columns, channels, at, dy + out, taps + out, masked_by == nullptr ? nullptr : masked_by + out);
        } else {
            zero_columns(at, 0, in_line);  // a line between windows, or after the last
        }
        unit += at.kh1 - at.kh0;
    }
}

void max_backward(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const uint8_t* taps,
                  const float* masked_by, float* dx) {
    if (shape.stride_h >= shape.kernel_h && shape.stride_w >= shape.kernel_w) {
        return max_backward_apart(shape, begin, end, dy, taps, masked_by, dx);
    }
    const FloatTag d;
    const TapTag dt;
    backward_lines(shape, begin, end, dx, [&](int tap, int, int, int64_t at, int64_t lanes) LOCKSTEP_LAMBDA {
        const auto chosen = hn::RebindMask(d, hn::Eq(load_taps(taps + at, lanes), hn::Set(dt, tap)));
        return hn::IfThenElseZero(chosen, load_gradient(dy, masked_by, at, lanes));
    });
}

void average_backward(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const float* masked_by,
                      float* dx) {
    const PoolAxis rows = pool_rows(shape), columns = pool_columns(shape);
    backward_lines(shape, begin, end, dx, [&](int, int oh, int ow, int64_t at, int64_t lanes) LOCKSTEP_LAMBDA {
        const int count = (rows.end_tap(oh) - rows.first_tap(oh)) * (columns.end_tap(ow) - columns.first_tap(ow));
        return hn::Div(load_gradient(dy, masked_by, at, lanes), hn::Set(FloatTag(), static_cast<float>(count)));
    });
}

}  // namespace

constexpr PoolKernels kPool = {max_forward, max_backward, average_forward, average_backward};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr PoolKernels kScalarPool = {reference::max_pool_forward, reference::max_pool_backward,
                                     reference::average_pool_forward, reference::average_pool_backward};

}  // namespace

const PoolKernels& pool_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kPool, kScalarPool);
}

}  // namespace lockstep
#endif  // HWY_ONCE

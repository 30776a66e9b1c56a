// The definition of pooling: see reference.hpp.
#include <array>

#include "backend/cpu/pool_plan.hpp"
#include "backend/cpu/reference.hpp"

namespace lockstep::reference {
namespace {

/// Where the elements of a layer's two sides lie.
struct Layout {
    explicit Layout(const PoolShape& s)
        : rows(pool_rows(s)), columns(pool_columns(s)), channels(s.in.channels), kernel_w(s.kernel_w) {}
    int64_t input(int64_t line, int iw, int c) const { return (line * columns.in + iw) * channels + c; }
    int64_t output(int64_t line, int ow, int c) const { return (line * columns.out + ow) * channels + c; }

    PoolAxis rows, columns;
    int channels, kernel_w;
};

/// body(kh, kw, index of the tap's input) for the valid taps of one window, in order.
template <class Body>
void for_each_tap(const Layout& at, int64_t n, int oh, int ow, int c, Body body) {
    for (int kh = at.rows.first_tap(oh); kh < at.rows.end_tap(oh); ++kh) {
        const int64_t line = n * at.rows.in + oh * at.rows.stride - at.rows.pad + kh;
        for (int kw = at.columns.first_tap(ow); kw < at.columns.end_tap(ow); ++kw) {
            body(kh, kw, at.input(line, ow * at.columns.stride - at.columns.pad + kw, c));
        }
    }
}

/// body(tap, oh, ow, index of the output) for the windows that hold one input, in ascending order.
template <class Body>
void for_each_window(const Layout& at, int64_t n, int ih, int iw, int c, Body body) {
    for (int oh = at.rows.first_window(ih); oh < at.rows.end_window(ih); ++oh) {
        for (int ow = at.columns.first_window(iw); ow < at.columns.end_window(iw); ++ow) {
            const int kh = ih + at.rows.pad - oh * at.rows.stride;
            const int kw = iw + at.columns.pad - ow * at.columns.stride;
            body(kh * at.kernel_w + kw, oh, ow, at.output(n * at.rows.out + oh, ow, c));
        }
    }
}

int valid_taps(const Layout& at, int oh, int ow) {
    return (at.rows.end_tap(oh) - at.rows.first_tap(oh)) * (at.columns.end_tap(ow) - at.columns.first_tap(ow));
}

float plain_sum(const Layout& at, int64_t n, int oh, int ow, int c, const float* x) {
    float sum = 0.0F;
    for_each_tap(at, n, oh, ow, c, [&](int, int, int64_t i) { sum = sum + x[i]; });
    return sum;
}

float block_sum(const Layout& at, int64_t n, int oh, int ow, int c, const float* x) {
    float total = 0.0F;
    const int taps = at.rows.kernel * at.kernel_w;
    for (int begin = 0; begin < taps; begin += kAverageBlock) {
        std::array<float, 4> chain{};
        for_each_tap(at, n, oh, ow, c, [&](int kh, int kw, int64_t i) {
            const int tap = kh * at.kernel_w + kw;
            if (tap < begin || tap >= begin + kAverageBlock) return;
            float& sum = chain[static_cast<std::size_t>(tap % 4)];
            sum = sum + x[i];
        });
        total = total + ((chain[0] + chain[1]) + (chain[2] + chain[3]));
    }
    return total;
}

}  // namespace

void max_pool_forward(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y, uint8_t* taps) {
    const Layout at(shape);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t n = unit / at.rows.out;
        const int oh = static_cast<int>(unit % at.rows.out);
        for (int ow = 0; ow < at.columns.out; ++ow) {
            for (int c = 0; c < at.channels; ++c) {
                float best = 0.0F;
                int winner = -1;
                for_each_tap(at, n, oh, ow, c, [&](int kh, int kw, int64_t i) {
                    if (winner >= 0 && !(x[i] > best)) return;
                    best = x[i];
                    winner = kh * at.kernel_w + kw;
                });
                y[at.output(unit, ow, c)] = best;
                taps[at.output(unit, ow, c)] = static_cast<uint8_t>(winner);
            }
        }
    }
}

void max_pool_backward(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const uint8_t* taps,
                       const float* masked_by, float* dx) {
    const Layout at(shape);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t n = unit / at.rows.in;
        const int ih = static_cast<int>(unit % at.rows.in);
        for (int iw = 0; iw < at.columns.in; ++iw) {
            for (int c = 0; c < at.channels; ++c) {
                float sum = 0.0F;
                for_each_window(at, n, ih, iw, c, [&](int tap, int, int, int64_t o) {
                    if (taps[o] == tap && (masked_by == nullptr || masked_by[o] > 0.0F)) sum = sum + dy[o];
                });
                dx[at.input(unit, iw, c)] = sum;
            }
        }
    }
}

void average_pool_forward(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y) {
    const Layout at(shape);
    const bool plain = shape.kernel_h * shape.kernel_w <= kPlainAverageTaps;
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t n = unit / at.rows.out;
        const int oh = static_cast<int>(unit % at.rows.out);
        for (int ow = 0; ow < at.columns.out; ++ow) {
            const auto count = static_cast<float>(valid_taps(at, oh, ow));
            for (int c = 0; c < at.channels; ++c) {
                const float sum = plain ? plain_sum(at, n, oh, ow, c, x) : block_sum(at, n, oh, ow, c, x);
                y[at.output(unit, ow, c)] = sum / count;
            }
        }
    }
}

void average_pool_backward(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const float* masked_by,
                           float* dx) {
    const Layout at(shape);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t n = unit / at.rows.in;
        const int ih = static_cast<int>(unit % at.rows.in);
        for (int iw = 0; iw < at.columns.in; ++iw) {
            for (int c = 0; c < at.channels; ++c) {
                float sum = 0.0F;
                for_each_window(at, n, ih, iw, c, [&](int, int oh, int ow, int64_t o) {
                    if (masked_by == nullptr || masked_by[o] > 0.0F) {
                        sum = sum + dy[o] / static_cast<float>(valid_taps(at, oh, ow));
                    }
                });
                dx[at.input(unit, iw, c)] = sum;
            }
        }
    }
}

}  // namespace lockstep::reference

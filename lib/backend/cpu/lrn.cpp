// Local response normalisation with channels on lanes. A row's channels lie in a buffer between zeros, which are no
// terms of a sum that begins at +0, so every window is as long as the next.
#include <algorithm>

#include "backend/cpu/norm_kernels.hpp"
#include "backend/cpu/reference_norm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/lrn.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/fixed_lanes.hpp"
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

constexpr int kPiece = 1024;    // channels in the buffer at a time
constexpr int kMaxRadius = 64;  // wider windows are the reference's

/// Channels [begin - border, begin + count + border) of a row; zeros where it has none.
template <int kBorder>
struct Padded {
    float values[kPiece + 2 * kBorder + kLanes];

    void copy(const float* row, int channels, int begin, int count, int border) {
        const int first = begin - border, last = begin + count + border;
        const int from = std::max(first, 0), to = std::min(last, channels);
        float* end = std::fill_n(values, from - first, 0.0F);
        end = std::copy(row + from, row + to, end);
        std::fill_n(end, last - to + kLanes, 0.0F);
    }
};

struct Lrn {
    int window;
    FloatVec bias, alpha, minus_beta;

    explicit Lrn(const LrnShape& shape, int radius)
        : window(2 * radius + 1),
          bias(hn::Set(FloatTag(), shape.bias)),
          alpha(hn::Set(FloatTag(), shape.alpha)),
          minus_beta(hn::Set(FloatTag(), -shape.beta)) {}
    /// d of the channels whose windows begin at `x`.
    HWY_INLINE FloatVec base(const float* x) const {
        const FloatTag d;
        FloatVec squares = hn::Zero(d);
        for (int j = 0; j < window; ++j) {
            const FloatVec value = hn::LoadU(d, x + j);
            squares = fma(value, value, squares);
        }
        return fma(alpha, squares, bias);
    }
    HWY_INLINE FloatVec power(FloatVec base) const { return exp_lanes(hn::Mul(minus_beta, log_lanes(base))); }
};

int radius_of(const LrnShape& shape) {
    return std::min(shape.radius, shape.channels - 1);
}

void lrn(const LrnShape& shape, int64_t rows, const float* x, float* y) {
    const int channels = shape.channels, radius = radius_of(shape);
    if (radius > kMaxRadius) return reference::lrn(shape, rows, x, y);
    const Lrn of(shape, radius);
    Padded<kMaxRadius> padded;
    for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
        for (int begin = 0; begin < channels; begin += kPiece) {
            const int count = std::min(kPiece, channels - begin);
            padded.copy(x, channels, begin, count, radius);
            for_each_vector(count, [&](int64_t c, int64_t lanes) LOCKSTEP_LAMBDA {
                const FloatVec power = of.power(of.base(padded.values + c));
                store(hn::Mul(load(x + begin + c, lanes), power), y + begin + c, lanes);
            });
        }
    }
}

void lrn_backward(const LrnShape& shape, int64_t rows, const float* x, const float* dy, float* dx) {
    const int channels = shape.channels, radius = radius_of(shape);
    if (radius > kMaxRadius) return reference::lrn_backward(shape, rows, x, dy, dx);
    const FloatTag d;
    const Lrn of(shape, radius);
    const FloatVec minus_k = hn::Set(d, -(2.0F * shape.alpha * shape.beta));
    Padded<2 * kMaxRadius> padded;
    float powers[kPiece + 2 * kMaxRadius + kLanes], terms[kPiece + 2 * kMaxRadius + kLanes];
    for (int64_t r = 0; r < rows; ++r, x += channels, dy += channels, dx += channels) {
        for (int begin = 0; begin < channels; begin += kPiece) {
            const int count = std::min(kPiece, channels - begin);
            padded.copy(x, channels, begin, count, 2 * radius);
            // d^-beta and t of the channels in any window, at their distance from begin - radius
            const int first = begin - radius;
            const int from = std::max(first, 0), to = std::min(begin + count + radius, channels);
            std::fill_n(terms, from - first, 0.0F);
            for_each_vector(to - from, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA {
                const int64_t at = from - first + i;
                const FloatVec base = of.base(padded.values + at), power = of.power(base);
                const FloatVec product = hn::Mul(load(dy + from + i, lanes), load(x + from + i, lanes));
                store(hn::Mul(product, hn::Div(power, base)), terms + at, lanes);
                store(power, powers + at, lanes);
            });
            std::fill_n(terms + (to - first), begin + count + radius - to + kLanes, 0.0F);
            for_each_vector(count, [&](int64_t c, int64_t lanes) LOCKSTEP_LAMBDA {
                FloatVec sum = hn::Zero(d);
                for (int j = 0; j < of.window; ++j) sum = hn::Add(sum, hn::LoadU(d, terms + c + j));
                const FloatVec straight = hn::Mul(load(dy + begin + c, lanes), load(powers + radius + c, lanes));
                const FloatVec factor = hn::Mul(minus_k, load(x + begin + c, lanes));
                store(fma(factor, sum, straight), dx + begin + c, lanes);
            });
        }
    }
}

}  // namespace

constexpr LrnKernels kLrn = {lrn, lrn_backward};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr LrnKernels kScalarLrn = {reference::lrn, reference::lrn_backward};

}  // namespace

const LrnKernels& lrn_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kLrn, kScalarLrn);
}

}  // namespace lockstep
#endif  // HWY_ONCE

// Softmax and its cross entropy, a row at a time: classes on lanes, the 16 chains of the sum in 16 / lanes vectors.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference.hpp"
#include "core/fixed_math.hpp"
#include "core/fixed_math_constants.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/softmax.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

/// exp_fixed(float) in every lane: the sequence of core/fixed_math_constants.hpp.
HWY_INLINE FloatVec exp_lanes(FloatVec x) {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    const FloatVec magic = hn::Set(d, fixed::kRoundMagic), one = hn::Set(d, 1.0F);
    const FloatVec t = fma(x, hn::Set(d, fixed::kLog2E), magic);
    const FloatVec n = hn::Sub(t, magic);
    FloatVec r = fma(n, hn::Set(d, -fixed::kLn2Hi), x);
    r = fma(n, hn::Set(d, -fixed::kLn2Lo), r);
    FloatVec p = hn::Set(d, fixed::kExp[4]);
    p = fma(p, r, hn::Set(d, fixed::kExp[3]));
    p = fma(p, r, hn::Set(d, fixed::kExp[2]));
    p = fma(p, r, hn::Set(d, fixed::kExp[1]));
    p = fma(p, r, hn::Set(d, fixed::kExp[0]));
    p = fma(p, r, one);
    p = fma(p, r, one);
    const auto scale = hn::Add(hn::ShiftLeft<23>(hn::BitCast(du, t)), hn::Set(du, fixed::kOneBits));
    const FloatVec y = hn::Mul(p, hn::BitCast(d, scale));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, fixed::kExpLowest)), y);  // x <= 0 here: no overflow
}

HWY_INLINE FloatVec row_maximum(int classes, const float* z) {
    const FloatTag d;
    FloatVec maximum = hn::Set(d, z[0]);
    for_each_vector(classes, [&](int64_t c, int64_t lanes) LOCKSTEP_LAMBDA {
        const FloatVec v = load(z + c, lanes);
        const FloatVec larger = hn::Max(v, maximum);
        const bool whole = lanes >= kLanes;
        maximum = whole ? larger : hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(lanes)), larger, maximum);
    });
    return hn::MaxOfLanes(d, maximum);
}

/// The sum of e = exp(z - maximum); e is written to `exponentials` unless it is null.
HWY_INLINE float exponential_sum(int classes, const float* z, FloatVec maximum, float* exponentials) {
    const FloatTag d;
    constexpr int kVectors = 16 / kLanes;
    FloatVec chain[kVectors];
    for (FloatVec& c : chain) c = hn::Zero(d);
    for (int begin = 0; begin < classes; begin += 16) {
        for (int v = 0; v < kVectors; ++v) {
            const int c = begin + v * kLanes;
            if (c >= classes) break;
            const int lanes = classes - c;
            FloatVec e = exp_lanes(hn::Sub(load(z + c, lanes), maximum));
            if (exponentials != nullptr) store(e, exponentials + c, lanes);
            if (lanes < kLanes) e = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(lanes)), e);
            chain[v] = hn::Add(chain[v], e);
        }
    }
    HWY_ALIGN float folded[16];
    for (int v = 0; v < kVectors; ++v) hn::Store(chain[v], d, folded + v * kLanes);
    for (int width = 8; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) folded[i] = folded[i] + folded[i + width];
    }
    return folded[0];
}

HWY_INLINE void divide(int classes, float* values, float divisor) {
    const FloatVec by = hn::Set(FloatTag(), divisor);
    for_each_vector(classes, [&](int64_t c, int64_t lanes)
                                 LOCKSTEP_LAMBDA { store(hn::Div(load(values + c, lanes), by), values + c, lanes); });
}

void cross_entropy(int rows, int classes, const float* logits, const int32_t* labels, float* loss, float* dlogits) {
    for (int r = 0; r < rows; ++r) {
        const float* z = logits + int64_t{r} * classes;
        float* dz = dlogits == nullptr ? nullptr : dlogits + int64_t{r} * classes;
        const float at_label = z[labels[r]];  // read first: dlogits may be logits
        const FloatVec maximum = row_maximum(classes, z);
        const float sum = exponential_sum(classes, z, maximum, dz);
        loss[r] = log_fixed(sum) - (at_label - hn::GetLane(maximum));
        if (dz == nullptr) continue;
        divide(classes, dz, sum);
        dz[labels[r]] = dz[labels[r]] - 1.0F;
    }
}

void probabilities(int rows, int classes, const float* logits, float* out) {
    for (int r = 0; r < rows; ++r) {
        const float* z = logits + int64_t{r} * classes;
        float* p = out + int64_t{r} * classes;
        divide(classes, p, exponential_sum(classes, z, row_maximum(classes, z), p));
    }
}

void exponentials(int64_t n, const float* x, float* y) {
    for_each_vector(
        n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA { store(exp_lanes(load(x + i, lanes)), y + i, lanes); });
}

}  // namespace

constexpr SoftmaxKernels kSoftmax = {cross_entropy, probabilities, exponentials};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr SoftmaxKernels kScalarSoftmax = {reference::softmax_cross_entropy, reference::softmax,
                                           reference::exponentials};

}  // namespace

const SoftmaxKernels& softmax_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kSoftmax, kScalarSoftmax);
}

}  // namespace lockstep
#endif  // HWY_ONCE

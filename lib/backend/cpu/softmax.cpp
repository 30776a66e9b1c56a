// Softmax and its cross entropies, a row at a time: classes on lanes, the 16 chains of the sum in 16 / lanes vectors.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference.hpp"
#include "backend/cpu/reference_loss.hpp"
#include "core/fixed_math.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/softmax.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/fixed_lanes.hpp"
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

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

/// The 16 chains of a sum, side by side in registers, folded.
struct ClassChains {
    static constexpr int kVectors = 16 / kLanes;
    FloatVec of[kVectors];

    HWY_INLINE ClassChains() {
        for (FloatVec& chain : of) chain = hn::Zero(FloatTag());
    }
    /// Adds the first `lanes` lanes of a term to chain vector v.
    HWY_INLINE void add(int v, FloatVec term, int lanes) {
        const FloatTag d;
        if (lanes < kLanes) term = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(lanes)), term);
        of[v] = hn::Add(of[v], term);
    }
    HWY_INLINE float folded() const {
        HWY_ALIGN float all[16];
        for (int v = 0; v < kVectors; ++v) hn::Store(of[v], FloatTag(), all + v * kLanes);
        for (int width = 8; width > 0; width /= 2) {
            for (int i = 0; i < width; ++i) all[i] = all[i] + all[i + width];
        }
        return all[0];
    }
};

/// The sum of e = exp(z - maximum); e is written to `exponentials` unless it is null.
HWY_INLINE float exponential_sum(int classes, const float* z, FloatVec maximum, float* exponentials) {
    ClassChains chains;
    for (int begin = 0; begin < classes; begin += 16) {
        for (int v = 0; v < ClassChains::kVectors; ++v) {
            const int c = begin + v * kLanes;
            if (c >= classes) break;
            const FloatVec e = exp_below_overflow(hn::Sub(load(z + c, classes - c), maximum));
            if (exponentials != nullptr) store(e, exponentials + c, classes - c);
            chains.add(v, e, classes - c);
        }
    }
    return chains.folded();
}

/// The sum of z - maximum.
HWY_INLINE float distance_sum(int classes, const float* z, FloatVec maximum) {
    ClassChains chains;
    for (int begin = 0; begin < classes; begin += 16) {
        for (int v = 0; v < ClassChains::kVectors; ++v) {
            const int c = begin + v * kLanes;
            if (c >= classes) break;
            chains.add(v, hn::Sub(load(z + c, classes - c), maximum), classes - c);
        }
    }
    return chains.folded();
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

void smoothed_cross_entropy(int rows, int classes, float smoothing, const float* logits, const int32_t* labels,
                            float* loss, float* dlogits) {
    const float off = smoothing / static_cast<float>(classes), on = 1.0F - smoothing;
    const FloatVec off_lanes = hn::Set(FloatTag(), off);
    for (int r = 0; r < rows; ++r) {
        const float* z = logits + int64_t{r} * classes;
        float* dz = dlogits == nullptr ? nullptr : dlogits + int64_t{r} * classes;
        const FloatVec maximum = row_maximum(classes, z);
        const float distance = z[labels[r]] - hn::GetLane(maximum), distances = distance_sum(classes, z, maximum);
        const float sum = exponential_sum(classes, z, maximum, dz);
        loss[r] = log_fixed(sum) - std::fma(on, distance, off * distances);
        if (dz == nullptr) continue;
        const FloatVec by = hn::Set(FloatTag(), sum);
        for_each_vector(classes, [&](int64_t c, int64_t lanes) LOCKSTEP_LAMBDA {
            store(hn::Sub(hn::Div(load(dz + c, lanes), by), off_lanes), dz + c, lanes);
        });
        dz[labels[r]] = dz[labels[r]] - on;
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

void logarithms(int64_t n, const float* x, float* y) {
    for_each_vector(
        n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA { store(log_lanes(load(x + i, lanes)), y + i, lanes); });
}

}  // namespace

constexpr SoftmaxKernels kSoftmax = {cross_entropy, smoothed_cross_entropy, probabilities, exponentials, logarithms};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr SoftmaxKernels kScalarSoftmax = {reference::softmax_cross_entropy, reference::smoothed_cross_entropy,
                                           reference::softmax, reference::exponentials, reference::logarithms};

}  // namespace

const SoftmaxKernels& softmax_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kSoftmax, kScalarSoftmax);
}

}  // namespace lockstep
#endif  // HWY_ONCE

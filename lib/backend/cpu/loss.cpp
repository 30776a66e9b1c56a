// The sigmoid and its cross entropy, one row a lane.
#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference_loss.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/loss.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/fixed_lanes.hpp"
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

HWY_INLINE FloatVec sigmoid_lanes(FloatVec x) {
    const FloatVec one = hn::Set(FloatTag(), 1.0F);
    return hn::Div(one, hn::Add(one, exp_lanes(hn::Neg(x))));
}

void sigmoid(int64_t n, const float* x, float* y) {
    for_each_vector(
        n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA { store(sigmoid_lanes(load(x + i, lanes)), y + i, lanes); });
}

void sigmoid_cross_entropy(int rows, const float* logits, const int32_t* labels, float* loss, float* dlogits) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec zero = hn::Zero(d), one = hn::Set(d, 1.0F);
    int r = 0;
    for (; r + kLanes <= rows; r += kLanes) {
        const FloatVec z = hn::LoadU(d, logits + r);
        const FloatVec label = hn::ConvertTo(d, hn::LoadU(di, labels + r));
        const FloatVec e = exp_below_overflow(hn::Neg(hn::Abs(z)));
        const FloatVec u = hn::Add(one, e);
        const FloatVec rest = hn::Div(hn::Sub(e, hn::Sub(u, one)), u);
        const FloatVec log1p = hn::Add(log_lanes(u), rest);
        const FloatVec positive = hn::IfThenElseZero(hn::Gt(z, zero), z);
        hn::StoreU(hn::Add(fma(hn::Neg(z), label, positive), log1p), d, loss + r);
        if (dlogits != nullptr) hn::StoreU(hn::Sub(sigmoid_lanes(z), label), d, dlogits + r);
    }
    // The definition itself does for the last few rows.
    reference::sigmoid_cross_entropy(rows - r, logits + r, labels + r, loss + r,
                                     dlogits == nullptr ? nullptr : dlogits + r);
}

}  // namespace

constexpr LossKernels kLoss = {sigmoid_cross_entropy, sigmoid};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr LossKernels kScalarLoss = {reference::sigmoid_cross_entropy, reference::sigmoid};

}  // namespace

const LossKernels& loss_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kLoss, kScalarLoss);
}

}  // namespace lockstep
#endif  // HWY_ONCE

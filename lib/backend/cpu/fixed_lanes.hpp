// exp_fixed(float) and log_fixed(float) in every lane: the sequences of core/fixed_math_constants.hpp. Included once
// per target, after simd.hpp.
#if defined(LOCKSTEP_BACKEND_CPU_FIXED_LANES_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_BACKEND_CPU_FIXED_LANES_HPP
#undef LOCKSTEP_BACKEND_CPU_FIXED_LANES_HPP
#else
#define LOCKSTEP_BACKEND_CPU_FIXED_LANES_HPP
#endif

#include <limits>

#include "backend/cpu/simd.hpp"
#include "core/fixed_math_constants.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {

/// Of x <= 88, where the result does not overflow.
HWY_INLINE FloatVec exp_below_overflow(FloatVec x) {
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
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, fixed::kExpLowest)), y);
}

HWY_INLINE FloatVec exp_lanes(FloatVec x) {
    const FloatTag d;
    const FloatVec infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    return hn::IfThenElse(hn::Gt(x, hn::Set(d, fixed::kExpHighest)), infinity, exp_below_overflow(x));
}

HWY_INLINE FloatVec log_lanes(FloatVec x) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    const FloatVec nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
    const auto bits = hn::BitCast(di, x);
    const auto k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, static_cast<int32_t>(fixed::kSqrtHalfBits))));
    const FloatVec m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(k)));
    const FloatVec e = hn::ConvertTo(d, k);
    const FloatVec f = hn::Sub(m, hn::Set(d, 1.0F));
    const FloatVec z = hn::Mul(f, f);
    FloatVec p = hn::Set(d, fixed::kLog[8]);
    LOCKSTEP_UNROLL for (int i = 7; i >= 0; --i) p = fma(p, f, hn::Set(d, fixed::kLog[i]));
    p = hn::Mul(p, f);
    FloatVec y = hn::Mul(p, z);
    y = fma(e, hn::Set(d, fixed::kLn2Lo), y);
    y = fma(z, hn::Set(d, -0.5F), y);
    y = hn::Add(f, y);
    y = fma(e, hn::Set(d, fixed::kLn2Hi), y);
    y = hn::IfThenElse(hn::Lt(x, hn::Set(d, fixed::kSmallestNormal)), hn::Neg(infinity), y);
    y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), nan, y);
    return hn::IfThenElse(hn::Lt(x, infinity), y, x);
}

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#endif  // include guard of this target

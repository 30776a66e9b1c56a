// What every kernel file starts with: the vector types of the target being compiled, one fma, and loads and stores that
// end at an array's end. Included once per target, after hwy/foreach_target.h; only targets with a fused multiply-add
// count (LOCKSTEP_SIMD), since Highway's MulAdd is two roundings elsewhere.
#if defined(LOCKSTEP_BACKEND_CPU_SIMD_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_BACKEND_CPU_SIMD_HPP
#undef LOCKSTEP_BACKEND_CPU_SIMD_HPP
#else
#define LOCKSTEP_BACKEND_CPU_SIMD_HPP
#endif

#include <cstdint>

#include "hwy/highway.h"

#undef LOCKSTEP_SIMD
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define LOCKSTEP_SIMD 1
#else
#define LOCKSTEP_SIMD 0
#endif

// A kernel's lambda: compiled for the target like the function around it (a pragma does not reach it with clang), and a
// part of its loop.
#undef LOCKSTEP_LAMBDA
#define LOCKSTEP_LAMBDA HWY_ATTR __attribute__((always_inline))

// Register tiles are arrays of vectors: their loops must be gone before registers are assigned.
#undef LOCKSTEP_UNROLL
#define LOCKSTEP_UNROLL _Pragma("GCC unroll 16")

// The table of this name that an instruction set's namespace holds, or the scalar one; for HWY_ONCE parts.
#undef LOCKSTEP_PICK_TABLE
#if HWY_TARGETS & HWY_NEON
#define LOCKSTEP_PICK_TABLE(isa, table, scalar) ((isa) == Isa::kNeon ? N_NEON::table : (scalar))
#else
#define LOCKSTEP_PICK_TABLE(isa, table, scalar) \
    ((isa) == Isa::kAvx512 ? N_AVX3::table : (isa) == Isa::kAvx2 ? N_AVX2::table : (scalar))
#endif

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(FloatTag()));

/// a * b + c, rounded once.
HWY_INLINE FloatVec fma(FloatVec a, FloatVec b, FloatVec c) {
    return hn::MulAdd(a, b, c);
}

/// The first min(n, kLanes) elements from p on; the other lanes are 0. Nothing beyond them is read: NEON's MaskedLoad
/// reads a whole vector, which may end on an unmapped page.
HWY_INLINE FloatVec load(const float* p, int64_t n) {
    const FloatTag d;
    if (n >= kLanes) return hn::LoadU(d, p);
#if HWY_TARGET == HWY_NEON
    float lanes[kLanes] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
    return hn::LoadU(d, lanes);
#else
    return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#endif
}

/// Writes the first min(n, kLanes) lanes and nothing else (NEON's BlendedStore rewrites a neighbour's elements, which
/// belong to another thread).
HWY_INLINE void store(FloatVec v, float* p, int64_t n) {
    const FloatTag d;
    if (n >= kLanes) {
        hn::StoreU(v, d, p);
        return;
    }
#if HWY_TARGET == HWY_NEON
    float lanes[kLanes];
    hn::StoreU(v, d, lanes);
    for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
#else
    hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#endif
}

/// body(i, lanes) for every vector of [0, n): lanes is kLanes (a constant, once inlined) but for the last.
template <class Body>
HWY_INLINE void for_each_vector(int64_t n, Body body) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) body(i, int64_t{kLanes});
    if (i < n) body(i, n - i);
}

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#endif  // include guard of this target

// CUDA's intrinsic functions that kernels use, in plain C++: they touch numbers and memory only and never block.
// Arithmetic ones round as the device does (to nearest, with one rounding for fma).
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "test/emulation/runtime.hpp"

inline float __fmaf_rn(float a, float b, float c) {
    return std::fma(a, b, c);
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fsub_rn(float a, float b) {
    return a - b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __frcp_rn(float a) {
    return 1.0F / a;
}
inline float __fsqrt_rn(float a) {
    return std::sqrt(a);
}
inline double __fma_rn(double a, double b, double c) {
    return std::fma(a, b, c);
}
inline double __dadd_rn(double a, double b) {
    return a + b;
}
inline double __dsub_rn(double a, double b) {
    return a - b;
}
inline double __dmul_rn(double a, double b) {
    return a * b;
}
inline double __ddiv_rn(double a, double b) {
    return a / b;
}
inline double __dsqrt_rn(double a) {
    return std::sqrt(a);
}
inline float __double2float_rn(double a) {
    return static_cast<float>(a);
}
inline float __int2float_rn(int a) {
    return static_cast<float>(a);
}
inline float __uint2float_rn(unsigned a) {
    return static_cast<float>(a);
}
inline float __ll2float_rn(long long a) {
    return static_cast<float>(a);
}
inline float __ull2float_rn(unsigned long long a) {
    return static_cast<float>(a);
}
inline int __float2int_rz(float a) {
    return static_cast<int>(a);
}
inline int __float2int_rn(float a) {
    return static_cast<int>(std::nearbyint(a));
}
inline int __double2int_rn(double a) {
    return static_cast<int>(std::nearbyint(a));
}
inline long long __double2ll_rn(double a) {
    return static_cast<long long>(std::nearbyint(a));
}

inline int __float_as_int(float a) {
    return std::bit_cast<int>(a);
}
inline unsigned __float_as_uint(float a) {
    return std::bit_cast<unsigned>(a);
}
inline float __int_as_float(int a) {
    return std::bit_cast<float>(a);
}
inline float __uint_as_float(unsigned a) {
    return std::bit_cast<float>(a);
}
inline long long __double_as_longlong(double a) {
    return std::bit_cast<long long>(a);
}
inline double __longlong_as_double(long long a) {
    return std::bit_cast<double>(a);
}

inline int __clz(int a) {
    return std::countl_zero(static_cast<unsigned>(a));
}
inline int __clzll(long long a) {
    return std::countl_zero(static_cast<unsigned long long>(a));
}
inline int __ffs(int a) {
    return a == 0 ? 0 : std::countr_zero(static_cast<unsigned>(a)) + 1;
}
inline int __popc(unsigned a) {
    return std::popcount(a);
}
inline int __popcll(unsigned long long a) {
    return std::popcount(a);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}

inline int min(int a, int b) {
    return b < a ? b : a;
}
inline int max(int a, int b) {
    return a < b ? b : a;
}
inline unsigned min(unsigned a, unsigned b) {
    return b < a ? b : a;
}
inline unsigned max(unsigned a, unsigned b) {
    return a < b ? b : a;
}
inline long min(long a, long b) {
    return b < a ? b : a;
}
inline long max(long a, long b) {
    return a < b ? b : a;
}
inline long long min(long long a, long long b) {
    return b < a ? b : a;
}
inline long long max(long long a, long long b) {
    return a < b ? b : a;
}
inline unsigned long min(unsigned long a, unsigned long b) {
    return b < a ? b : a;
}
inline unsigned long max(unsigned long a, unsigned long b) {
    return a < b ? b : a;
}
inline unsigned long long min(unsigned long long a, unsigned long long b) {
    return b < a ? b : a;
}
inline unsigned long long max(unsigned long long a, unsigned long long b) {
    return a < b ? b : a;
}

template <class T>
T __ldg(const T* address) {
    return *address;
}
template <class T>
T __ldcs(const T* address) {
    return *address;
}
template <class T>
T __ldcg(const T* address) {
    return *address;
}
template <class T>
void __stcs(T* address, T value) {
    *address = value;
}
template <class T>
void __stcg(T* address, T value) {
    *address = value;
}

// Threads of a grid run one after another, so an atomic operation is a plain one. Which thread comes first changes with
// the seed: a sum of floats by atomics gives other bits, and is found out.
#define LS_ATOMIC(name, T, expression)   \
    inline T name(T* address, T value) { \
        const T old = *address;          \
        *address = (expression);         \
        return old;                      \
    }
LS_ATOMIC(atomicAdd, int, old + value)
LS_ATOMIC(atomicAdd, unsigned, old + value)
LS_ATOMIC(atomicAdd, unsigned long long, old + value)
LS_ATOMIC(atomicAdd, float, old + value)
LS_ATOMIC(atomicAdd, double, old + value)
LS_ATOMIC(atomicMax, int, old < value ? value : old)
LS_ATOMIC(atomicMax, unsigned, old < value ? value : old)
LS_ATOMIC(atomicMax, unsigned long long, old < value ? value : old)
LS_ATOMIC(atomicMin, int, value < old ? value : old)
LS_ATOMIC(atomicMin, unsigned, value < old ? value : old)
LS_ATOMIC(atomicMin, unsigned long long, value < old ? value : old)
LS_ATOMIC(atomicOr, int, old | value)
LS_ATOMIC(atomicOr, unsigned, old | value)
LS_ATOMIC(atomicAnd, unsigned, old& value)
LS_ATOMIC(atomicExch, int, value)
LS_ATOMIC(atomicExch, unsigned, value)
LS_ATOMIC(atomicExch, float, value)
#undef LS_ATOMIC
template <class T>
T atomicCAS(T* address, T compare, T value) {
    const T old = *address;
    if (old == compare) *address = value;
    return old;
}

inline void __threadfence() {}
inline void __threadfence_block() {}
[[noreturn]] inline void __trap() {
    lockstep::emulation::fail("__trap() was called by a kernel");
}

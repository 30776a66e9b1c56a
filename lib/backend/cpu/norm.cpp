// Batch norm with channels on lanes: a block of rows at a time, several vectors of channels in each pass over its rows,
// what belongs to a channel in registers.
#include <algorithm>
#include <type_traits>

#include "backend/cpu/norm_kernels.hpp"
#include "backend/cpu/reference_norm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/norm.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

using reference::kSumBlockRows;

/// Vectors in a pass that needs about four registers for each, of which AVX2 has half as many.
constexpr int kVectors = HWY_TARGET == HWY_AVX2 ? 2 : 4;
/// Of an elementwise pass: long runs of each row suit the prefetcher, and what belongs to a channel may as well come
/// from L1.
constexpr int kPassVectors = 16;
constexpr int64_t kPassRows = 64;  // of an elementwise pass: they stay in L1 until all their channels are done

/// body(first channel, vectors as a constant, channels) for groups of up to Vectors vectors.
template <int Vectors, class Body>
HWY_INLINE void for_each_group(int channels, Body body) {
    int c = 0;
    for (; c + Vectors * kLanes <= channels; c += Vectors * kLanes) {
        body(c, std::integral_constant<int, Vectors>(), Vectors * kLanes);
    }
    if constexpr (Vectors > 4) {
        for (; c + 4 * kLanes <= channels; c += 4 * kLanes) body(c, std::integral_constant<int, 4>(), 4 * kLanes);
    }
    if constexpr (Vectors > 2) {
        for (; c + 2 * kLanes <= channels; c += 2 * kLanes) body(c, std::integral_constant<int, 2>(), 2 * kLanes);
    }
    for (; c + kLanes <= channels; c += kLanes) body(c, std::integral_constant<int, 1>(), kLanes);
    if (c < channels) body(c, std::integral_constant<int, 1>(), channels - c);
}

/// Calls body(first row, rows, channel, vectors, lanes) for the groups of each block of rows in turn.
template <int Vectors, class Body>
HWY_INLINE void for_each_block(int64_t rows, int channels, int64_t block, Body body) {
    for (int64_t begin = 0; begin < rows; begin += block) {
        const int64_t count = std::min(block, rows - begin);
        for_each_group<Vectors>(
            channels, [&](int c, auto vectors, int lanes) LOCKSTEP_LAMBDA { body(begin, count, c, vectors, lanes); });
    }
}

/// The 4 chains of a block for each of V vectors of channels.
template <int V>
struct Chains {
    FloatVec of[4][V];

    HWY_INLINE Chains() {
        LOCKSTEP_UNROLL for (int i = 0; i < 4; ++i) {
            LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) of[i][v] = hn::Zero(FloatTag());
        }
    }
    HWY_INLINE void add_to(float* totals, int lanes) const {
        LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) {
            const FloatVec block = hn::Add(hn::Add(of[0][v], of[1][v]), hn::Add(of[2][v], of[3][v]));
            float* to = totals + v * kLanes;
            store(hn::Add(load(to, lanes - v * kLanes), block), to, lanes - v * kLanes);
        }
    }
};

/// term(row, chain, vector) for the rows of a block and each vector.
template <int V, class Term>
HWY_INLINE void for_each_term(int64_t rows, Term term) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        LOCKSTEP_UNROLL for (int chain = 0; chain < 4; ++chain) {
            LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) term(r + chain, chain, v);
        }
    }
    LOCKSTEP_UNROLL for (int chain = 0; chain < 3; ++chain) {
        if (r + chain < rows) {
            LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) term(r + chain, chain, v);
        }
    }
}

template <int V>
HWY_INLINE void load_each(const float* p, int lanes, FloatVec (&to)[V]) {
    LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) to[v] = load(p + v * kLanes, lanes - v * kLanes);
}

/// dy at `at`, or +0 where the output of a relu is not positive.
template <bool kMasked>
HWY_INLINE FloatVec load_gradient(const float* dy, const float* masked_by, int64_t at, int lanes) {
    const FloatVec g = load(dy + at, lanes);
    if constexpr (!kMasked) return g;
    return hn::IfThenElseZero(hn::Gt(load(masked_by + at, lanes), hn::Zero(FloatTag())), g);
}

void add_sums(const NormSlice& slice, const float* x, float* sums) {
    for_each_block<kVectors>(slice.rows, slice.channels, kSumBlockRows,
                             [&](int64_t begin, int64_t rows, int c, auto vectors, int lanes) LOCKSTEP_LAMBDA {
                                 constexpr int V = decltype(vectors)::value;
                                 const float* from = x + begin * slice.stride + c;
                                 Chains<V> chains;
                                 for_each_term<V>(rows, [&](int64_t r, int chain, int v) LOCKSTEP_LAMBDA {
                                     const FloatVec value =
                                         load(from + r * slice.stride + v * kLanes, lanes - v * kLanes);
                                     chains.of[chain][v] = hn::Add(chains.of[chain][v], value);
                                 });
                                 chains.add_to(sums + c, lanes);
                             });
}

void add_squares(const NormSlice& slice, const float* x, const float* sums, float count, float* squares) {
    const FloatVec divisor = hn::Set(FloatTag(), count);
    for_each_block<kVectors>(slice.rows, slice.channels, kSumBlockRows,
                             [&](int64_t begin, int64_t rows, int c, auto vectors, int lanes) LOCKSTEP_LAMBDA {
                                 constexpr int V = decltype(vectors)::value;
                                 const float* from = x + begin * slice.stride + c;
                                 FloatVec mean[V];
                                 load_each(sums + c, lanes, mean);
                                 LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) mean[v] = hn::Div(mean[v], divisor);
                                 Chains<V> chains;
                                 for_each_term<V>(rows, [&](int64_t r, int chain, int v) LOCKSTEP_LAMBDA {
                                     const FloatVec value =
                                         load(from + r * slice.stride + v * kLanes, lanes - v * kLanes);
                                     const FloatVec d = hn::Sub(value, mean[v]);
                                     chains.of[chain][v] = fma(d, d, chains.of[chain][v]);
                                 });
                                 chains.add_to(squares + c, lanes);
                             });
}

template <bool kMasked>
HWY_INLINE void add_gradient_sums_as(const NormSlice& slice, const float* x, const float* mean, const float* inverse,
                                     const float* dy, const float* masked_by, float* xhat_sums, float* dy_sums) {
    for_each_block<kVectors / 2>(
        slice.rows, slice.channels, kSumBlockRows,
        [&](int64_t begin, int64_t rows, int c, auto vectors, int lanes) LOCKSTEP_LAMBDA {
            constexpr int V = decltype(vectors)::value;
            const int64_t first = begin * slice.stride + c;
            FloatVec center[V], scale[V];
            load_each(mean + c, lanes, center);
            load_each(inverse + c, lanes, scale);
            Chains<V> products, plain;
            for_each_term<V>(rows, [&](int64_t r, int chain, int v) LOCKSTEP_LAMBDA {
                const int64_t at = first + r * slice.stride + v * kLanes;
                const FloatVec g = load_gradient<kMasked>(dy, masked_by, at, lanes - v * kLanes);
                const FloatVec xhat = hn::Mul(hn::Sub(load(x + at, lanes - v * kLanes), center[v]), scale[v]);
                products.of[chain][v] = fma(g, xhat, products.of[chain][v]);
                plain.of[chain][v] = hn::Add(plain.of[chain][v], g);
            });
            products.add_to(xhat_sums + c, lanes);
            plain.add_to(dy_sums + c, lanes);
        });
}

void add_gradient_sums(const NormSlice& slice, const float* x, const float* mean, const float* inverse, const float* dy,
                       const float* masked_by, float* xhat_sums, float* dy_sums) {
    if (masked_by == nullptr) {
        add_gradient_sums_as<false>(slice, x, mean, inverse, dy, masked_by, xhat_sums, dy_sums);
    } else {
        add_gradient_sums_as<true>(slice, x, mean, inverse, dy, masked_by, xhat_sums, dy_sums);
    }
}

template <bool kRelu>
HWY_INLINE void batch_norm_as(int64_t rows, int channels, const float* x, const float* statistics, const float* gamma,
                              const float* beta, float* y) {
    const FloatVec zero = hn::Zero(FloatTag());
    for_each_block<kPassVectors>(rows, channels, kPassRows,
                                 [&](int64_t begin, int64_t count, int c, auto vectors, int lanes) LOCKSTEP_LAMBDA {
                                     constexpr int V = decltype(vectors)::value;
                                     FloatVec mean[V], inverse[V], factor[V], shift[V];
                                     load_each(statistics + c, lanes, mean);
                                     load_each(statistics + channels + c, lanes, inverse);
                                     load_each(gamma + c, lanes, factor);
                                     load_each(beta + c, lanes, shift);
                                     int64_t at = begin * channels + c;
                                     for (int64_t r = 0; r < count; ++r, at += channels) {
                                         LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) {
                                             const int left = lanes - v * kLanes;
                                             const FloatVec d = hn::Sub(load(x + at + v * kLanes, left), mean[v]);
                                             FloatVec value = fma(factor[v], hn::Mul(d, inverse[v]), shift[v]);
                                             if constexpr (kRelu)
                                                 value = hn::IfThenZeroElse(hn::Le(value, zero), value);
                                             store(value, y + at + v * kLanes, left);
                                         }
                                     }
                                 });
}

void batch_norm(int64_t rows, int channels, bool relu, const float* x, const float* statistics, const float* gamma,
                const float* beta, float* y) {
    if (relu) {
        batch_norm_as<true>(rows, channels, x, statistics, gamma, beta, y);
    } else {
        batch_norm_as<false>(rows, channels, x, statistics, gamma, beta, y);
    }
}

template <bool kMasked>
HWY_INLINE void batch_norm_backward_as(int64_t rows, int channels, int64_t count, const float* x,
                                       const float* statistics, const float* gamma, const float* sums, const float* dy,
                                       const float* masked_by, float* dx) {
    const FloatVec divisor = hn::Set(FloatTag(), static_cast<float>(count));
    for_each_block<kPassVectors>(
        rows, channels, kPassRows,
        [&](int64_t begin, int64_t block_rows, int c, auto vectors, int lanes) LOCKSTEP_LAMBDA {
            constexpr int V = decltype(vectors)::value;
            FloatVec mean[V], inverse[V], scale[V], k[V], b[V];
            load_each(statistics + c, lanes, mean);
            load_each(statistics + channels + c, lanes, inverse);
            load_each(gamma + c, lanes, scale);
            load_each(sums + c, lanes, k);
            load_each(sums + channels + c, lanes, b);
            LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) {
                scale[v] = hn::Mul(scale[v], inverse[v]);
                k[v] = hn::Div(k[v], divisor);
                b[v] = hn::Div(b[v], divisor);
            }
            int64_t at = begin * channels + c;
            for (int64_t r = 0; r < block_rows; ++r, at += channels) {
                LOCKSTEP_UNROLL for (int v = 0; v < V; ++v) {
                    const int left = lanes - v * kLanes;
                    const FloatVec xhat = hn::Mul(hn::Sub(load(x + at + v * kLanes, left), mean[v]), inverse[v]);
                    const FloatVec g = load_gradient<kMasked>(dy, masked_by, at + v * kLanes, left);
                    const FloatVec centred = hn::NegMulAdd(xhat, k[v], hn::Sub(g, b[v]));  // one rounding, like fma
                    store(hn::Mul(scale[v], centred), dx + at + v * kLanes, left);
                }
            }
        });
}

void batch_norm_backward(int64_t rows, int channels, int64_t count, const float* x, const float* statistics,
                         const float* gamma, const float* sums, const float* dy, const float* masked_by, float* dx) {
    if (masked_by == nullptr) {
        batch_norm_backward_as<false>(rows, channels, count, x, statistics, gamma, sums, dy, masked_by, dx);
    } else {
        batch_norm_backward_as<true>(rows, channels, count, x, statistics, gamma, sums, dy, masked_by, dx);
    }
}

}  // namespace

constexpr NormKernels kNorm = {add_sums, add_squares, add_gradient_sums, batch_norm, batch_norm_backward};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr NormKernels kScalarNorm = {reference::add_sums, reference::add_squares, reference::add_gradient_sums,
                                     reference::batch_norm, reference::batch_norm_backward};

}  // namespace

const NormKernels& norm_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kNorm, kScalarNorm);
}

}  // namespace lockstep
#endif  // HWY_ONCE

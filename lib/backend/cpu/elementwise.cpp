// relu, add, scale, the finite check and sums over a shard's rows: a few operations an element, so memory sets their
// speed.
#include <algorithm>
#include <array>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/elementwise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

void relu(int64_t n, const float* x, float* y) {
    const FloatVec zero = hn::Zero(FloatTag());
    for_each_vector(n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA {
        const FloatVec v = load(x + i, lanes);
        store(hn::IfThenZeroElse(hn::Le(v, zero), v), y + i, lanes);
    });
}

void relu_backward(int64_t n, const float* y, float* dy) {
    const FloatVec zero = hn::Zero(FloatTag());
    for_each_vector(n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA {
        const auto active = hn::Gt(load(y + i, lanes), zero);
        store(hn::IfThenElseZero(active, load(dy + i, lanes)), dy + i, lanes);
    });
}

void add(int64_t n, const float* left, const float* right, float* dst) {
    for_each_vector(n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA {
        store(hn::Add(load(left + i, lanes), load(right + i, lanes)), dst + i, lanes);
    });
}

void scale(int64_t n, float factor, float* x) {
    const FloatVec factors = hn::Set(FloatTag(), factor);
    for_each_vector(n, [&](int64_t i, int64_t lanes)
                           LOCKSTEP_LAMBDA { store(hn::Mul(factors, load(x + i, lanes)), x + i, lanes); });
}

/// The largest magnitude, compared as an integer: infinities and NaNs have all exponent bits set, so they are largest.
bool all_below(int64_t n, const float* x, float limit) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const auto bound = hn::BitCast(di, hn::Set(d, limit));
    const auto magnitude = hn::Set(di, 0x7fffffff);
    const auto at = [&](const float* p)
                        LOCKSTEP_LAMBDA { return hn::And(hn::BitCast(di, hn::LoadU(d, p)), magnitude); };
    constexpr int64_t kSlice = 16384;  // looked at before giving up early
    // Read side by side: one run of reads alone leaves a third of the memory's speed unused.
    constexpr int64_t kRuns = 8, kRun = kSlice / kRuns;
    int64_t begin = 0;
    for (; begin + kSlice <= n; begin += kSlice) {
        const float* const p = x + begin;
        auto largest = hn::Zero(di);
        auto second = hn::Zero(di);
        for (int64_t i = 0; i < kRun; i += kLanes) {
            LOCKSTEP_UNROLL for (int64_t run = 0; run < kRuns; run += 2) {
                largest = hn::Max(largest, at(p + run * kRun + i));
                second = hn::Max(second, at(p + (run + 1) * kRun + i));
            }
        }
        if (!hn::AllTrue(di, hn::Lt(hn::Max(largest, second), bound))) return false;
    }
    auto largest = hn::Zero(di);
    for (int64_t i = begin; i < n; i += kLanes) {
        largest = hn::Max(largest, hn::And(hn::BitCast(di, load(x + i, n - i)), magnitude));
    }
    return hn::AllTrue(di, hn::Lt(largest, bound));
}

/// `Vectors` vectors of columns at once: their chains are independent, which hides the latency of an addition.
template <int Vectors>
HWY_INLINE void fold_columns(const FoldProgram& fold, int columns, int first, int64_t count, const float* x,
                             std::span<float* const> out) {
    const FloatTag d;
    HWY_ALIGN float stack[kMaxFoldStack * Vectors * kLanes];
    float* top = stack;
    for (const FoldProgram::Leaf& leaf : fold.leaves) {
        FloatVec sum[Vectors];
        for (int v = 0; v < Vectors; ++v) sum[v] = hn::Zero(d);
        const float* row = x + int64_t{leaf.begin} * columns + first;
        for (int r = leaf.begin; r < leaf.end; ++r, row += columns) {
            for (int v = 0; v < Vectors; ++v) sum[v] = hn::Add(sum[v], load(row + v * kLanes, count - v * kLanes));
        }
        for (int i = 0; i < leaf.adds; ++i) {
            top -= Vectors * kLanes;
            for (int v = 0; v < Vectors; ++v) sum[v] = hn::Add(hn::Load(d, top + v * kLanes), sum[v]);
        }
        if (leaf.root >= 0) {
            float* to = out[static_cast<std::size_t>(leaf.root)] + first;
            for (int v = 0; v < Vectors; ++v) store(sum[v], to + v * kLanes, count - v * kLanes);
        } else {
            for (int v = 0; v < Vectors; ++v) hn::Store(sum[v], d, top + v * kLanes);
            top += Vectors * kLanes;
        }
    }
}

void fold_rows(const FoldProgram& fold, int columns, int begin, int end, const float* x, std::span<float* const> out) {
    constexpr int kVectors = 4;
    int c = begin;
    for (; c + kVectors * kLanes <= end; c += kVectors * kLanes) {
        fold_columns<kVectors>(fold, columns, c, int64_t{kVectors} * kLanes, x, out);
    }
    for (; c < end; c += kLanes) fold_columns<1>(fold, columns, c, end - c, x, out);
}

}  // namespace

constexpr ElementwiseKernels kElementwise = {relu, relu_backward, add, scale, all_below, fold_rows};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr ElementwiseKernels kScalarElementwise = {reference::relu,  reference::relu_backward, reference::add,
                                                   reference::scale, reference::all_below,     reference::fold_rows};

}  // namespace

const ElementwiseKernels& elementwise_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kElementwise, kScalarElementwise);
}

}  // namespace lockstep
#endif  // HWY_ONCE

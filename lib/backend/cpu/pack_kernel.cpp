#include "backend/cpu/pack_kernel.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pack_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

void pack_rows(const float* from, int64_t stride, const PackRange& range, float* to) {
    const FloatTag d;
    const hn::FixedTag<float, 4> four;
    const hn::FixedTag<float, 2> two;
    const int64_t width = range.width;
    // Of a pass over all panels: each source row is read along, page after page. Narrow panels share cache lines, of
    // rows that may lie a power of two apart.
    const int64_t rows = width < kLanes ? 8 : 16;
    for (int64_t begin = range.k.begin; begin < range.k.end; begin += rows) {
        const int64_t end = std::min(range.k.end, begin + rows);
        for (int64_t p = range.panels.begin; p < range.panels.end; ++p) {
            const int64_t count = std::min(width, range.columns - p * width);
            const bool vectors = count == width && width % kLanes == 0;
            const bool pairs = count == width && width % 2 == 0;  // a tile's rows: 6
            const float* const source = from + p * width;
            float* const target = to + (p - range.panels.begin) * range.panel_stride - range.k.begin * width;
            int64_t k = begin;
#if HWY_TARGET != HWY_NEON
            if (width == 6 && p * width + 8 <= range.columns) {  // the two too many are written over by the next row
                const hn::FixedTag<float, 8> eight;
                for (; k + 1 < end; ++k) hn::StoreU(hn::LoadU(eight, source + k * stride), eight, target + k * width);
            }
#endif
            for (; k < end; ++k) {
                const float* s = source + k * stride;
                float* t = target + k * width;
                if (vectors) {
                    for (int64_t j = 0; j < width; j += kLanes) hn::StoreU(hn::LoadU(d, s + j), d, t + j);
                } else if (pairs) {
                    int64_t j = 0;
                    for (; j + 4 <= width; j += 4) hn::StoreU(hn::LoadU(four, s + j), four, t + j);
                    if (j < width) hn::StoreU(hn::LoadU(two, s + j), two, t + j);
                } else {
                    std::copy_n(s, count, t);
                    std::fill(t + count, t + width, 0.0F);
                }
            }
        }
    }
}

// 4 columns x 4 k, turned in registers.
HWY_INLINE void transpose4(const float* from, int64_t stride, float* to, int64_t width) {
    const hn::FixedTag<float, 4> d;
    const hn::FixedTag<double, 2> pairs;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + stride);
    const auto c = hn::LoadU(d, from + 2 * stride), e = hn::LoadU(d, from + 3 * stride);
    const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * width);
}

void pack_columns(const float* from, int64_t stride, const PackRange& range, float* to) {
    const int64_t width = range.width;
    constexpr int64_t kTerms = 64;  // of a pass over a panel's columns: what it writes stays in the first-level cache
    for (int64_t p = range.panels.begin; p < range.panels.end; ++p) {
        float* panel = to + (p - range.panels.begin) * range.panel_stride;
        for (int64_t begin = range.k.begin; begin < range.k.end; begin += kTerms) {
            const int64_t end = std::min(range.k.end, begin + kTerms);
            for (int64_t j = 0; j < width; j += 4) {
                const int64_t column = p * width + j;
                float* target = panel + (begin - range.k.begin) * width + j;
                int64_t k = begin;
                if (column + 4 <= range.columns) {
                    for (; k + 4 <= end; k += 4, target += 4 * width)
                        transpose4(from + column * stride + k, stride, target, width);
                }
                for (; k < end; ++k, target += width) {
                    for (int64_t i = 0; i < 4; ++i)
                        target[i] = column + i < range.columns ? from[(column + i) * stride + k] : 0.0F;
                }
            }
        }
    }
}

}  // namespace

constexpr PackKernels kPackKernels{pack_rows, pack_columns};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr PackKernels kNone{};

}  // namespace

const PackKernels& pack_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kPackKernels, kNone);
}

}  // namespace lockstep
#endif  // HWY_ONCE

// Dropout: a Philox block of four random values for four neighbouring elements, many blocks at once.
//
// A block's four 32-bit words live in the low halves of four 64-bit lanes: a 32 x 32 bit product then gives the next
// low and high word where they are needed, and what is left in upper halves is never read. About 17 instructions an
// element for one block at a time become two.
#include <algorithm>
#include <array>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/dropout.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

using WordTag = hn::Repartition<uint32_t, FloatTag>;
using BlockTag = hn::Repartition<uint64_t, FloatTag>;
using BlockVec = hn::Vec<BlockTag>;
constexpr int kBlocks = kLanes / 2;     // blocks made at once
constexpr int kElements = 4 * kBlocks;  // and the elements they serve: two vectors
constexpr int kRounds = 10;

HWY_INLINE BlockVec product(BlockVec word, BlockVec multiplier) {
    const WordTag dw;
    return hn::MulEven(hn::BitCast(dw, word), hn::BitCast(dw, multiplier));
}

/// The blocks `blocks` at one position; writes 4 words a block in order, two to a lane. The algorithm and constants are
/// core/philox.cpp's.
HWY_INLINE void make_words(const PhiloxKey& key, BlockVec blocks, uint64_t position, uint64_t* words) {
    const BlockTag db;
    const BlockVec multiplier0 = hn::Set(db, 0xD2511F53U), multiplier1 = hn::Set(db, 0xCD9E8D57U);
    BlockVec c0 = blocks, c1 = hn::ShiftRight<32>(blocks);
    BlockVec c2 = hn::Set(db, position), c3 = hn::Set(db, position >> 32);
    uint32_t key0 = key[0], key1 = key[1];
    for (int round = 0; round < kRounds; ++round) {
        const BlockVec product0 = product(c0, multiplier0), product1 = product(c2, multiplier1);
        c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), hn::Set(db, uint64_t{key0}));
        c1 = product1;
        c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), hn::Set(db, uint64_t{key1}));
        c3 = product0;
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    const BlockVec low = hn::Set(db, 0xffffffffU);
    const BlockVec first = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    const BlockVec second = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    hn::StoreInterleaved2(first, second, db, words);
}

void row(const DropoutMask& mask, int64_t position, int64_t first, int64_t count, const float* x, float* y) {
    const FloatTag d;
    const WordTag dw;
    const BlockTag db;
    const FloatVec scale = hn::Set(d, mask.scale);
    const auto threshold = hn::Set(dw, mask.threshold);
    BlockVec blocks = hn::Iota(db, static_cast<uint64_t>(first / 4));
    const BlockVec step = hn::Set(db, uint64_t{kBlocks});
    const auto piece = [&](int64_t i, int64_t n) LOCKSTEP_LAMBDA {
        HWY_ALIGN uint64_t words[kElements / 2];
        make_words(mask.key, blocks, static_cast<uint64_t>(position), words);
        blocks = hn::Add(blocks, step);
        for (int k = 0; k < kElements && k < n; k += kLanes) {
            const auto bits = hn::BitCast(dw, hn::Load(db, words + k / 2));
            const auto kept = hn::RebindMask(d, hn::Eq(hn::Max(bits, threshold), bits));  // bits >= threshold
            store(hn::IfThenElseZero(kept, hn::Mul(load(x + i + k, n - k), scale)), y + i + k, n - k);
        }
    };
    int64_t i = 0;
    for (; i + kElements <= count; i += kElements) piece(i, kElements);
    if (i < count) piece(i, count - i);
}

}  // namespace

constexpr DropoutKernels kDropout = {row};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr DropoutKernels kScalarDropout = {reference::dropout_row};

}  // namespace

const DropoutKernels& dropout_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kDropout, kScalarDropout);
}

}  // namespace lockstep
#endif  // HWY_ONCE

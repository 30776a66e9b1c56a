#include "cuda/kernels/dropout.h"

#include "core/philox_rounds.hpp"
#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

constexpr int kWords = 4;

/// DropoutMask without std::array, whose operators are the host's.
struct Mask {
    uint32_t key0, key1, threshold;
    float scale;
    __device__ float apply(uint32_t word, float x) const { return word >= threshold ? x * scale : 0.0F; }
};

template <bool kAligned>
__global__ void k_dropout(Mask mask, int64_t rows, int64_t elements, const int64_t* __restrict__ positions,
                          const float* x, float* y) {
    for_each_item(rows, (elements + kWords - 1) / kWords, [=](int64_t r, int64_t block) {
        const auto position = static_cast<uint64_t>(positions[r]), number = static_cast<uint64_t>(block);
        uint32_t words[kWords] = {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                                  static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32)};
        philox_rounds(words, mask.key0, mask.key1);
        const int64_t at = r * elements + block * kWords;
        if constexpr (kAligned) {
            Pack<kWords> values = load<kWords>(x + at);
            for (int k = 0; k < kWords; ++k) values.v[k] = mask.apply(words[k], values.v[k]);
            store<kWords>(y + at, values);
        } else {
            for (int k = 0; k < kWords; ++k) {
                if (block * kWords + k < elements) y[at + k] = mask.apply(words[k], x[at + k]);
            }
        }
    });
}

}  // namespace

void launch_dropout(const DropoutMask& mask, int rows, int64_t elements, const int64_t* positions, const float* x,
                    float* y, cudaStream_t stream) {
    if (rows == 0 || elements == 0) return;
    const bool four = elements % kWords == 0 && all_aligned(x, y);
    const LineGrid over(rows, (elements + kWords - 1) / kWords);
    launch(four ? k_dropout<true> : k_dropout<false>, over.grid, over.block, 0, stream,
           Mask{mask.key[0], mask.key[1], mask.threshold, mask.scale}, int64_t{rows}, elements, in(positions, rows),
           in(x, rows * elements), out(y, rows * elements));
}

}  // namespace lockstep

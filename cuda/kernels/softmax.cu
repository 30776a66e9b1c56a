#include "cuda/kernels/softmax.h"

#include "core/fixed_float.hpp"
#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

constexpr int kChains = 16;  // of a row's sum, and lanes of a row: a warp holds two rows
constexpr int kRowsOfBlock = kThreadsOfBlock / kChains;
constexpr unsigned kAllLanes = 0xffffffffU;

/// One row among its sixteen lanes: m = max z and s = the sum of e = exp(z - m), in 16 chains (class mod 16) folded
/// i + (i+8), +4, +2, +1.
struct SoftmaxRow {
    const float* z;
    int classes, lane;
    float maximum, sum;
    float at_label;  // z[label], in every lane

    __device__ float exponential(int c) const { return fixed::exp_float(z[c] - maximum); }
};

// A row's sixteen chains added i + (i+8), +4, +2, +1; the sum is in its first lane.
__device__ inline float folded(float chain) {
    for (int lanes = kChains / 2; lanes > 0; lanes /= 2) {
        chain = chain + __shfl_down_sync(kAllLanes, chain, static_cast<unsigned>(lanes));
    }
    return chain;
}

// Every lane of the warp comes here, rows beyond the last one included: shuffles need them all.
__device__ inline SoftmaxRow softmax_row(const float* z, int classes, int label) {
    SoftmaxRow row{z, classes, static_cast<int>(threadIdx.x % kChains), classes > 0 ? z[0] : 0.0F, 0.0F, 0.0F};
    for (int c = row.lane; c < classes; c += kChains) {
        const float value = z[c];
        if (value > row.maximum) row.maximum = value;
        if (c == label) row.at_label = value;
    }
    for (int lanes = kChains / 2; lanes > 0; lanes /= 2) {
        const float other = __shfl_xor_sync(kAllLanes, row.maximum, lanes);
        if (other > row.maximum) row.maximum = other;
    }
    row.at_label =
        __shfl_sync(kAllLanes, row.at_label, static_cast<int>(threadIdx.x % 32) - row.lane + (label & (kChains - 1)));
    for (int c = row.lane; c < classes; c += kChains) row.sum = row.sum + row.exponential(c);
    row.sum = folded(row.sum);
    row.sum = __shfl_sync(kAllLanes, row.sum, static_cast<int>(threadIdx.x % 32) - row.lane);
    return row;
}

// A lane reads and writes the same classes, and writes each after its last read: results may replace the logits.
__global__ void k_softmax_cross_entropy(int rows, int classes, const float* logits, const int32_t* __restrict__ labels,
                                        float* __restrict__ loss, float* dlogits) {
    for (int first = static_cast<int>(blockIdx.x) * kRowsOfBlock; first < rows;
         first += static_cast<int>(gridDim.x) * kRowsOfBlock) {
        const int r = first + static_cast<int>(threadIdx.x) / kChains;
        const int64_t at = int64_t{r < rows ? r : rows - 1} * classes;
        const int label = labels[r < rows ? r : rows - 1];
        // A row beyond the last one must not read what another warp has replaced: it works on nothing.
        const SoftmaxRow row = softmax_row(logits + at, r < rows ? classes : 0, label);
        if (r >= rows) continue;
        if (row.lane == 0) loss[r] = fixed::log_float(row.sum) - (row.at_label - row.maximum);
        if (dlogits == nullptr) continue;
        for (int c = row.lane; c < classes; c += kChains) {
            float gradient = __fdiv_rn(row.exponential(c), row.sum);
            if (c == label) gradient = gradient - 1.0F;
            dlogits[at + c] = gradient;
        }
    }
}

// As above, against `on` at the label and `off` everywhere: the plain sum of z - m follows the order of the other one.
__global__ void k_smoothed_cross_entropy(int rows, int classes, float on, float off, const float* logits,
                                         const int32_t* __restrict__ labels, float* __restrict__ loss, float* dlogits) {
    for (int first = static_cast<int>(blockIdx.x) * kRowsOfBlock; first < rows;
         first += static_cast<int>(gridDim.x) * kRowsOfBlock) {
        const int r = first + static_cast<int>(threadIdx.x) / kChains;
        const int64_t at = int64_t{r < rows ? r : rows - 1} * classes;
        const int label = labels[r < rows ? r : rows - 1];
        const SoftmaxRow row = softmax_row(logits + at, r < rows ? classes : 0, label);
        float below = 0.0F;
        for (int c = row.lane; c < row.classes; c += kChains) below = below + (row.z[c] - row.maximum);
        below = folded(below);
        if (r >= rows) continue;
        if (row.lane == 0) {
            loss[r] = fixed::log_float(row.sum) - __fmaf_rn(on, row.at_label - row.maximum, off * below);
        }
        if (dlogits == nullptr) continue;
        for (int c = row.lane; c < classes; c += kChains) {
            float gradient = __fdiv_rn(row.exponential(c), row.sum) - off;
            if (c == label) gradient = gradient - on;
            dlogits[at + c] = gradient;
        }
    }
}

__global__ void k_softmax(int rows, int classes, const float* logits, float* probabilities) {
    for (int first = static_cast<int>(blockIdx.x) * kRowsOfBlock; first < rows;
         first += static_cast<int>(gridDim.x) * kRowsOfBlock) {
        const int r = first + static_cast<int>(threadIdx.x) / kChains;
        const int64_t at = int64_t{r < rows ? r : rows - 1} * classes;
        const SoftmaxRow row = softmax_row(logits + at, r < rows ? classes : 0, 0);
        if (r >= rows) continue;
        for (int c = row.lane; c < classes; c += kChains) {
            probabilities[at + c] = __fdiv_rn(row.exponential(c), row.sum);
        }
    }
}

}  // namespace

void launch_softmax_cross_entropy(int rows, int classes, const float* logits, const int32_t* labels, float* loss,
                                  float* dlogits, cudaStream_t stream) {
    if (rows == 0) return;
    const int64_t n = int64_t{rows} * classes;
    launch(k_softmax_cross_entropy, blocks_for(int64_t{rows} * kChains), kThreadsOfBlock, 0, stream, rows, classes,
           in(logits, n), in(labels, rows), out(loss, rows), out(dlogits, dlogits == nullptr ? 0 : n));
}

void launch_smoothed_cross_entropy(int rows, int classes, float smoothing, const float* logits, const int32_t* labels,
                                   float* loss, float* dlogits, cudaStream_t stream) {
    if (rows == 0) return;
    const int64_t n = int64_t{rows} * classes;
    launch(k_smoothed_cross_entropy, blocks_for(int64_t{rows} * kChains), kThreadsOfBlock, 0, stream, rows, classes,
           1.0F - smoothing, smoothing / static_cast<float>(classes), in(logits, n), in(labels, rows), out(loss, rows),
           out(dlogits, dlogits == nullptr ? 0 : n));
}

void launch_softmax(int rows, int classes, const float* logits, float* probabilities, cudaStream_t stream) {
    if (rows == 0) return;
    const int64_t n = int64_t{rows} * classes;
    launch(k_softmax, blocks_for(int64_t{rows} * kChains), kThreadsOfBlock, 0, stream, rows, classes, in(logits, n),
           out(probabilities, n));
}

}  // namespace lockstep

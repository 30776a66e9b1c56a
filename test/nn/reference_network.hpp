// The training step as plain scalar loops, layer after layer, shard after shard, without plans, fusing, streams or fold
// programs: what Network must equal, bit by bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/zoo.hpp"

namespace lockstep {

/// All samples of a global batch, rows in shard order.
struct Samples {
    int rows = 0;
    int64_t epoch = 0;
    std::vector<float> pixels;
    std::vector<int32_t> labels;
    std::vector<int64_t> positions;
};
/// Random pixels and labels; positions start at 1000.
Samples random_samples(SampleShape shape, int classes, int rows, unsigned seed);

struct StepSums {
    float loss = 0;
    std::vector<float> gradient;  // flat
};

/// What a rule of arithmetic is replaced by, for the twins that must fail.
enum class Twin {
    kNone,
    kLeftToRight,        // shards summed one after the other
    kDropoutByLocalRow,  // keyed by the row of the shard
    kAscendingReaders,   // gradients of an output with several readers, added from the first reader on
    kFirstShardsNorm,    // running values of the first half of the shards only
};

/// Loss and gradient sums of the whole batch, shards added in the canonical tree.
StepSums reference_step(const Model& model, const Samples& samples, std::span<const int64_t> sizes,
                        const std::vector<float>& weights, Twin twin = Twin::kNone);
/// The weights with the running values as the step leaves them.
std::vector<float> reference_running(const Model& model, const Samples& samples, std::span<const int64_t> sizes,
                                     const std::vector<float>& weights, Twin twin = Twin::kNone);
/// Logits of an evaluation: no dropout, running values.
std::vector<float> reference_logits(const Model& model, const Samples& samples, const std::vector<float>& weights);

}  // namespace lockstep

// The training step as plain scalar loops, shard after shard, layer after layer, without plans, fusing, streams or fold
// programs: what Network must equal, bit by bit. Also the same in double and without any order, for gradients.
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
enum class Twin { kNone, kLeftToRight, kDropoutByLocalRow };

/// Loss and gradient sums of the whole batch, shards added in the canonical tree.
StepSums reference_step(const Model& model, const Samples& samples, std::span<const int64_t> sizes,
                        const std::vector<float>& weights, Twin twin = Twin::kNone);
/// Logits without dropout.
std::vector<float> reference_logits(const Model& model, const Samples& samples, const std::vector<float>& weights);

/// The sum of the samples' losses in double. Dropout as in training.
double double_loss(const Model& model, const Samples& samples, const std::vector<double>& weights);

}  // namespace lockstep

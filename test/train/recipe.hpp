// What a run can be made of beside its model: every optimizer, schedule, metric to go by and way of reading, as a few
// choices each. Small enough that a test trains hundreds of them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace lockstep::test {

/// In this order; a recipe is a number of a value for each.
enum class Factor {
    kOptimizer,
    kSchedule,
    kWarmup,
    kNorm,     // none, or batch norm with statistics of the shard or of the batch
    kMetric,   // that plateau, early end and best checkpoint go by; decides the number of classes
    kDecides,  // nothing, an early end, the best checkpoint, or both
    kDropout,
    kAugment,
    kShuffle,
    kValidation,
    kLayout,
    kLast,
    kDecay,  // clipping, weight decay and l2
};

using Recipe = std::vector<std::size_t>;

const std::vector<std::string>& values_of(Factor factor);
/// How many values each factor has, for covering_rows.
std::vector<std::size_t> recipe_levels();
std::string describe(const Recipe& recipe);

/// 13 steps: 67 samples, a fifth of them perhaps held out, in batches of 16 of which the last leaves shards empty.
Config config_of(const Recipe& recipe);

}  // namespace lockstep::test

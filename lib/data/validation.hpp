// data.validation: a share of the training samples that is held out for evaluation, chosen by (seed, samples) alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/data_facts.hpp"
#include "data/dataset.hpp"

namespace lockstep {

/// floor(share * samples).
int64_t held_out_samples(double share, int64_t samples);

/// The samples that are held out, ascending: the first `count` places of a keyed permutation of 0 … samples-1.
std::vector<int64_t> held_out_indices(uint64_t seed, int64_t samples, int64_t count);

/// Takes data.validation's share out of the training split; both parts keep the order of the data. Throws kUsage where
/// a share above 0 holds out nothing.
DataSplits hold_out(const Config& config, DataSplits splits);
/// The same of the facts.
DataFacts hold_out(const Config& config, DataFacts facts);

}  // namespace lockstep

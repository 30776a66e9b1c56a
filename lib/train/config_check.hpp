// What a config would be refused for at the start of a training, found without one: for `plan` and `config check`.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "data/data_facts.hpp"

namespace lockstep {

/// Of what `plan` is told, beside what make_forecast finds: the file of model.weights is read and held against the
/// network's tensors. Throws what a training would.
void check_weights(const Config& config, const DataFacts& facts);

/// All that needs no data: of synthetic data, which are none, whatever `plan` would refuse at every number of ranks;
/// of others the layers of a custom model as far as no shape decides, and that the file of model.weights can be read.
/// Throws kUsage or kData. Returns warnings: what only some numbers of ranks could start.
std::vector<std::string> check_without_data(const Config& config);

}  // namespace lockstep

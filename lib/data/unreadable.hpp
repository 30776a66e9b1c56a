// Every sample of a data set read once: what of it is damaged is known before a training meets it.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace lockstep {

/// What is wrong with each sample that cannot be read, in the order of the data; empty where all can. `threads` >= 1
/// decode at once. Throws what is no fault of the data.
std::vector<std::string> unreadable_samples(const Dataset& data, int threads);

}  // namespace lockstep

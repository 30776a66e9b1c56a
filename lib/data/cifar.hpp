// CIFAR-10 and CIFAR-100 in their binary form: records of a label (CIFAR-100: a coarse one, then a fine one) and 32 x
// 32 pixels, all red ones, then green, then blue.
#pragma once

#include "data/data_facts.hpp"
#include "data/dataset.hpp"

namespace lockstep {

/// data.train and data.test of a config whose data.format is "cifar": files, plain or .gz, or the folder that holds
/// them. Which of the two sets they are, their sizes tell.
DataSplits open_cifar(const Config& config);
/// Whether a file of so many bytes may hold records of one of the two, and nothing else.
bool is_cifar_size(int64_t bytes);

DataFacts cifar_facts(const Config& config);

}  // namespace lockstep

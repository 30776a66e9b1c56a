// Data sets from NumPy's arrays: data.format = "npz".
#pragma once

#include "data/data_facts.hpp"
#include "data/dataset.hpp"
#include "data/table_data.hpp"

namespace lockstep {

/// data.train and data.test: one .npz each, whose arrays data.x and data.y name, or { images = "x.npy", labels =
/// "y.npy" }. x: (n,), (n, features), (n, h, w) or (n, h, w, c); data.shape may give another form of as many values. y:
/// (n,) or (n, 1); whole numbers are classes, others, and all with train.loss = "mse", targets of a regression. Arrays
/// larger than `memory` bytes stay on the disk.
DataSplits open_npz(const Config& config, int64_t memory = kTableMemory);

DataFacts npz_facts(const Config& config, int64_t memory = kTableMemory);

}  // namespace lockstep

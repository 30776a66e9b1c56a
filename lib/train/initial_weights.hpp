// model.weights: a safetensors file to start from, one of Lockstep's or one that PyTorch wrote under the same names.
// Rank 0 alone reads it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "io/safetensors.hpp"
#include "nn/parameters.hpp"

namespace lockstep {

struct InitialWeights {
    std::vector<std::byte> file;  // empty: the model's own initial values
    std::string where;            // its path, as rank 0 knows it
};

/// Reads the file that rank 0's config names, if any, and hands it to all ranks. Collective.
InitialWeights read_initial_weights(Communicator& comm, const Config& config);

/// What stands in checkpoints and must be equal on resume: of names, shapes and values, not of the path. Empty without
/// a file.
std::string fingerprint_of(const InitialWeights& weights);

/// Names of tensors that the model does not have, but for a counter that PyTorch keeps beside every batch norm
/// (num_batches_tracked): no weights of PyTorch's are without it, and no result depends on it.
std::vector<std::string> tensors_left_out(const SafetensorsFile& file, const ParameterTable& parameters);

/// What a start from the file at `path` (empty: none) would be refused for, without one: that it cannot be read, and
/// with the model's `parameters` what load_initial_weights says of it. For `plan` and `config check`.
void check_initial_weights(const std::string& path, const ParameterTable* parameters = nullptr);
/// The same of weights that were read, without a word about names that the model does not have. None: no check.
void check_initial_weights(const InitialWeights& weights, const ParameterTable& parameters);

/// Fills `flat` (stored_elements() of them). Tensors that the model does not have are left out, with a warning that
/// names them. Throws kUsage with a line for each of the model's tensors that is missing or has another shape or type,
/// kData where a running variance of batch norm is negative or not finite.
void load_initial_weights(const InitialWeights& weights, const ParameterTable& parameters, float* flat);

}  // namespace lockstep

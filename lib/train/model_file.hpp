// Weights and optimizer state as safetensors: tensors in model order, under PyTorch's names and shapes, elements in
// file order.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/version.hpp"
#include "io/safetensors.hpp"
#include "nn/parameters.hpp"
#include "optim/update.hpp"

namespace lockstep {

/// One tensor's values in file order, with its name and shape.
struct NamedTensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
};
/// Every tensor of `flat`, in model order and file order: without a prefix of the weights, buffers included; with one,
/// of a slot of the optimizer.
std::vector<NamedTensor> named_tensors(const ParameterTable& parameters, const float* flat,
                                       const std::string& prefix = "");
std::vector<TensorView> views(const std::vector<NamedTensor>& tensors);

/// model.safetensors. __metadata__ is exactly {"format":"pt","lockstep.arithmetic":…,"lockstep.model":…}.
std::vector<std::byte> model_file(const ParameterTable& parameters, const float* flat, const std::string& model,
                                  const std::string& arithmetic = kArithmetic);
/// The hash of the weights that the end event shows: XXH3 of all tensors' bytes, in model order.
std::string weights_hash(const ParameterTable& parameters, const float* flat);
/// optimizer.safetensors: "<slot>/<parameter>" for every slot.
std::vector<std::byte> optimizer_file(const ParameterTable& parameters, const std::vector<Update::Slot>& slots,
                                      const std::string& arithmetic = kArithmetic);

/// Fills `flat` from a file. Throws kUsage, naming file, tensor and both shapes, where it is another model's.
void load_tensors(const SafetensorsFile& file, const std::string& where, const ParameterTable& parameters,
                  const std::string& prefix, float* flat);

}  // namespace lockstep

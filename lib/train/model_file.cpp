#include "train/model_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/version.hpp"

namespace lockstep {

std::vector<NamedTensor> named_tensors(const ParameterTable& parameters, const float* flat, const std::string& prefix) {
    std::vector<NamedTensor> tensors;
    for (const Parameter& p : prefix.empty() ? parameters.stored() : parameters.all()) {
        NamedTensor& tensor = tensors.emplace_back();
        tensor.name = prefix + p.name;
        tensor.shape = p.shape;
        tensor.values.resize(static_cast<std::size_t>(p.count));
        to_file_order(p, flat + p.offset, tensor.values.data());
    }
    return tensors;
}

std::vector<TensorView> views(const std::vector<NamedTensor>& tensors) {
    std::vector<TensorView> all;
    for (const NamedTensor& t : tensors) all.push_back({t.name, t.shape, "F32", std::as_bytes(std::span(t.values))});
    return all;
}

std::vector<std::byte> model_file(const ParameterTable& parameters, const float* flat, const std::string& model,
                                  const std::string& arithmetic) {
    return safetensors_bytes(views(named_tensors(parameters, flat)),
                             {{"format", "pt"}, {"lockstep.arithmetic", arithmetic}, {"lockstep.model", model}});
}

std::string weights_hash(const ParameterTable& parameters, const float* flat) {
    std::vector<std::byte> bytes;
    for (const NamedTensor& t : named_tensors(parameters, flat)) {
        const auto part = std::as_bytes(std::span(t.values));
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return hex16(hash64(bytes));
}

std::vector<std::byte> optimizer_file(const ParameterTable& parameters, const std::vector<Update::Slot>& slots,
                                      const std::string& arithmetic) {
    std::vector<NamedTensor> tensors;
    for (const Update::Slot& slot : slots) {
        for (NamedTensor& t : named_tensors(parameters, slot.values, slot.name + "/")) tensors.push_back(std::move(t));
    }
    return safetensors_bytes(views(tensors), {{"format", "pt"}, {"lockstep.arithmetic", arithmetic}});
}

void load_tensors(const SafetensorsFile& file, const std::string& where, const ParameterTable& parameters,
                  const std::string& prefix, float* flat) {
    for (const Parameter& p : prefix.empty() ? parameters.stored() : parameters.all()) {
        const std::string name = prefix + p.name;
        const TensorView* tensor = file.find(name);
        if (tensor == nullptr) fail(ErrorKind::kUsage, "{}: has no tensor {}: it is another model's", where, name);
        if (tensor->shape != p.shape || tensor->dtype != "F32") {
            fail(ErrorKind::kUsage, "{}: tensor {} is {} [{}], this model's is F32 [{}]: it is another model's", where,
                 name, tensor->dtype, fmt::join(tensor->shape, ", "), fmt::join(p.shape, ", "));
        }
        std::vector<float> values(static_cast<std::size_t>(p.count));
        std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
        from_file_order(p, values.data(), flat + p.offset);
    }
}

}  // namespace lockstep

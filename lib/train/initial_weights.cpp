#include "train/initial_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "train/agreement.hpp"
#include "train/model_file.hpp"

namespace lockstep {
namespace {

void warn_of_others(const SafetensorsFile& file, const std::string& where, const ParameterTable& parameters) {
    constexpr std::size_t kShown = 8;
    std::vector<std::string> others;
    for (const TensorView& tensor : file.tensors()) {
        const auto& own = parameters.stored();
        if (std::none_of(own.begin(), own.end(), [&](const Parameter& p) { return p.name == tensor.name; }))
            others.push_back(tensor.name);
    }
    if (others.empty()) return;
    const std::size_t more = others.size() > kShown ? others.size() - kShown : 0;
    others.resize(others.size() - more);
    warn("model.weights: {}: left out, as the model has no such tensors: {}{}", where, fmt::join(others, ", "),
         more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

InitialWeights read_initial_weights(Communicator& comm, const Config& config) {
    InitialWeights weights;
    agree_on_first(comm, [&] {
        if (config.model.weights.empty()) return;
        weights.where = config.model.weights;
        comm.work_aside([&] { weights.file = read_file(weights.where); });
    });
    weights.where = comm.broadcast(0, weights.where);
    comm.broadcast(0, weights.file);
    return weights;
}

std::string fingerprint_of(const InitialWeights& weights) {
    if (weights.file.empty()) return "";
    const SafetensorsFile file = SafetensorsFile::parse(weights.file, weights.where);
    Sha256 hash;
    for (const TensorView& tensor : file.tensors()) {
        const std::string head = fmt::format("{} {} [{}] {}\n", tensor.name, tensor.dtype, fmt::join(tensor.shape, ","),
                                             tensor.bytes.size());
        hash.update(std::as_bytes(std::span(head)));
        hash.update(tensor.bytes);
    }
    return fmt::format("{} tensors sha256 {}", file.tensors().size(), hash.hex());
}

void load_initial_weights(const InitialWeights& weights, const ParameterTable& parameters, float* flat) {
    const SafetensorsFile file = SafetensorsFile::parse(weights.file, weights.where);
    std::string faults;
    const auto fault = [&](const std::string& line) {
        faults += fmt::format("{}model.weights: {}: {}", faults.empty() ? "" : "\n", weights.where, line);
    };
    for (const Parameter& p : parameters.stored()) {
        const TensorView* tensor = file.find(p.name);
        if (tensor == nullptr) {
            fault(fmt::format("has no tensor {} [{}], which the model needs", p.name, fmt::join(p.shape, ", ")));
        } else if (tensor->shape != p.shape || tensor->dtype != "F32") {
            fault(fmt::format("tensor {} is {} [{}], the model's is F32 [{}]", p.name, tensor->dtype,
                              fmt::join(tensor->shape, ", "), fmt::join(p.shape, ", ")));
        }
    }
    if (!faults.empty()) throw Error(ErrorKind::kUsage, faults);
    warn_of_others(file, weights.where, parameters);
    load_tensors(file, weights.where, parameters, "", flat);
}

}  // namespace lockstep

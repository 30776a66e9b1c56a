#include "train/initial_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "io/torch_file.hpp"
#include "train/agreement.hpp"
#include "train/model_file.hpp"

namespace lockstep {
namespace {

void warn_of_others(const SafetensorsFile& file, const std::string& where, const ParameterTable& parameters) {
    constexpr std::size_t kShown = 8;
    std::vector<std::string> others = tensors_left_out(file, parameters);
    if (others.empty()) return;
    const std::size_t more = others.size() > kShown ? others.size() - kShown : 0;
    others.resize(others.size() - more);
    warn("model.weights: {}: left out, as the model has no such tensors: {}{}", where, fmt::join(others, ", "),
         more > 0 ? fmt::format(" and {} more", more) : "");
}

std::vector<std::byte> weights_file(const std::string& path) {
    std::error_code error;
    if (std::filesystem::exists(path, error) && std::filesystem::is_other(path, error)) {
        fail(ErrorKind::kData, "model.weights: {}: it is no file", path);  // a pipe would wait for a writer
    }
    std::vector<std::byte> bytes = read_file(path);
    if (bytes.empty()) fail(ErrorKind::kData, "model.weights: {}: empty, a safetensors file is needed", path);
    if (is_torch_file(bytes)) fail(ErrorKind::kData, "model.weights: {}: {}", path, torch_file_advice(path));
    return bytes;
}

/// What stands before the model's name in the name of every tensor of the file that it has, if anything does: other
/// trainers wrap a model in another (DistributedDataParallel: "module.", torch.compile: "_orig_mod.").
std::string prefix_of(const SafetensorsFile& file, const ParameterTable& parameters) {
    const std::string& first = parameters.stored().front().name;
    const std::string end = fmt::format(".{}", first);
    for (const TensorView& tensor : file.tensors()) {
        if (!std::string_view(tensor.name).ends_with(end)) continue;
        const std::string prefix = tensor.name.substr(0, tensor.name.size() - first.size());
        const auto& own = parameters.stored();
        if (std::all_of(own.begin(), own.end(), [&](const Parameter& p) { return file.find(prefix + p.name); }))
            return prefix;
    }
    return "";
}

/// All that must be so of a file before a value of it is used.
void check_tensors(const SafetensorsFile& file, const std::string& where, const ParameterTable& parameters) {
    if (const std::string prefix = prefix_of(file, parameters); !prefix.empty()) {
        fail(ErrorKind::kUsage,
             "model.weights: {}: its tensors have the model's names behind \"{}\": they are of a model inside another "
             "(DistributedDataParallel, torch.compile); save that one's state_dict, in Python model.{}state_dict(), or "
             "take \"{}\" off the names",
             where, prefix, prefix, prefix);
    }
    std::string faults;
    const auto fault = [&](const std::string& line) {
        faults += fmt::format("{}model.weights: {}: {}", faults.empty() ? "" : "\n", where, line);
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
}

/// Batch norm divides by the root of a running variance: no training makes it negative or endless.
void check_variances(const SafetensorsFile& file, const std::string& where, const ParameterTable& parameters) {
    for (const Parameter& p : parameters.stored()) {
        if (p.trainable || !p.name.ends_with(".running_var")) continue;
        std::vector<float> values(static_cast<std::size_t>(p.count));
        std::memcpy(values.data(), file.find(p.name)->bytes.data(), values.size() * sizeof(float));
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::isfinite(values[i]) && values[i] >= 0) continue;
            fail(ErrorKind::kData, "model.weights: {}: tensor {} holds {} at {}; a variance is finite and at least 0",
                 where, p.name, values[i], i);
        }
    }
}

}  // namespace

InitialWeights read_initial_weights(Communicator& comm, const Config& config) {
    InitialWeights weights;
    agree_on_first(comm, [&] {
        if (config.model.weights.empty()) return;
        weights.where = config.model.weights;
        comm.work_aside([&] { weights.file = weights_file(weights.where); });
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

std::vector<std::string> tensors_left_out(const SafetensorsFile& file, const ParameterTable& parameters) {
    std::vector<std::string> others;
    const auto& own = parameters.stored();
    for (const TensorView& tensor : file.tensors()) {
        if (std::string_view(tensor.name).ends_with(".num_batches_tracked")) continue;
        if (std::none_of(own.begin(), own.end(), [&](const Parameter& p) { return p.name == tensor.name; }))
            others.push_back(tensor.name);
    }
    return others;
}

void check_initial_weights(const std::string& path, const ParameterTable* parameters) {
    if (path.empty()) return;
    const std::vector<std::byte> bytes = weights_file(path);
    const SafetensorsFile file = SafetensorsFile::parse(bytes, path);
    if (parameters == nullptr) return;
    check_tensors(file, path, *parameters);
    check_variances(file, path, *parameters);
    warn_of_others(file, path, *parameters);
}

void check_initial_weights(const InitialWeights& weights, const ParameterTable& parameters) {
    if (weights.file.empty()) return;
    const SafetensorsFile file = SafetensorsFile::parse(weights.file, weights.where);
    check_tensors(file, weights.where, parameters);
    check_variances(file, weights.where, parameters);
}

void load_initial_weights(const InitialWeights& weights, const ParameterTable& parameters, float* flat) {
    const SafetensorsFile file = SafetensorsFile::parse(weights.file, weights.where);
    check_tensors(file, weights.where, parameters);
    check_variances(file, weights.where, parameters);
    warn_of_others(file, weights.where, parameters);
    load_tensors(file, weights.where, parameters, "", flat);
}

}  // namespace lockstep

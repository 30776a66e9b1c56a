// The writing half of safetensors.hpp: the header's keys in the given order, spelled as the reference writer
// (serde_json, compact) spells them, so that equal tensors give equal bytes and equal sums.
#include <algorithm>
#include <bit>
#include <set>

#include "core/error.hpp"
#include "io/json_number.hpp"
#include "io/safetensors.hpp"
#include "io/tensor_type.hpp"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are copied as they lie in memory, which is little-endian");

std::string metadata_text(const std::vector<std::pair<std::string, std::string>>& metadata) {
    std::string text;
    for (const auto& [key, value] : metadata) {
        text += fmt::format("{}{}:{}", text.empty() ? "" : ",", json_string(key), json_string(value));
    }
    return fmt::format("\"__metadata__\":{{{}}}", text);
}

// A tensor that contradicts itself is a fault of the program, told before anything unreadable is written.
void check(const TensorView& tensor, std::set<std::string>& names) {
    const TensorType* type = find_tensor_type(tensor.dtype);
    if (!type) fail(ErrorKind::kRuntime, "tensor {} has the unknown type {}", tensor.name, tensor.dtype);
    const auto needed = tensor_bytes(*type, tensor.shape);
    if (!needed || *needed != tensor.bytes.size()) {
        fail(ErrorKind::kRuntime, "tensor {} of type {} and shape {} needs {} bytes and has {}", tensor.name,
             tensor.dtype, shape_text(tensor.shape), needed ? fmt::to_string(*needed) : "too many",
             tensor.bytes.size());
    }
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
        fail(ErrorKind::kRuntime, "the tensor name {} is reserved or used twice", tensor.name);
    }
}

}  // namespace

std::vector<std::byte> safetensors_bytes(const std::vector<TensorView>& tensors,
                                         const std::vector<std::pair<std::string, std::string>>& metadata) {
    std::string header = "{";
    if (!metadata.empty()) header += metadata_text(metadata);
    std::set<std::string> names;
    size_t offset = 0;
    for (const TensorView& tensor : tensors) {
        check(tensor, names);
        const size_t end = offset + tensor.bytes.size();
        header +=
            fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", header.size() > 1 ? "," : "",
                        json_string(tensor.name), tensor.dtype, shape_text(tensor.shape), offset, end);
        offset = end;
    }
    header += '}';
    header.resize((header.size() + 7) / 8 * 8, ' ');

    std::vector<std::byte> bytes;
    bytes.reserve(8 + header.size() + offset);
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(uint64_t{header.size()} >> (8 * i)));
    const auto append = [&](std::span<const std::byte> part) { bytes.insert(bytes.end(), part.begin(), part.end()); };
    append(std::as_bytes(std::span(header)));
    for (const TensorView& tensor : tensors) append(tensor.bytes);
    return bytes;
}

}  // namespace lockstep

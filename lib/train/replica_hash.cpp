#include "train/replica_hash.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/hash.hpp"

namespace lockstep {
namespace {

constexpr int64_t kPieceElements = 16384;  // 64 KiB: copied and hashed within the second-level cache

/// Where an element of memory stands in the file: both orders differ in the columns of a few tensors alone.
int64_t file_element(const Parameter& parameter, int64_t element) {
    const std::vector<int32_t> columns = parameter.file_columns();
    if (columns.empty()) return element;
    const auto width = static_cast<int64_t>(columns.size());
    const auto column = std::find(columns.begin(), columns.end(), static_cast<int32_t>(element % width));
    return element / width * width + (column - columns.begin());
}

}  // namespace

ReplicaHasher::ReplicaHasher(Backend& backend, const ParameterTable& parameters, const float* weights,
                             const std::vector<Update::Slot>& slots)
    : backend_(backend), parameters_(parameters) {
    arrays_.push_back({"", weights});
    for (const Update::Slot& slot : slots) arrays_.push_back({slot.name + "/", slot.values});
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
        for (std::size_t p = 0; p < parameters.all().size(); ++p) {
            const int64_t count = parameters.all()[p].count;
            for (int64_t begin = 0; begin < count; begin += kPieceElements) {
                pieces_.push_back(
                    {static_cast<int>(a), static_cast<int>(p), begin, std::min(kPieceElements, count - begin)});
            }
        }
        if (a == 0) weight_pieces_ = pieces_.size();
    }
    hashes_.resize(pieces_.size());
    weight_ranges_ = backend.split_items(static_cast<int>(weight_pieces_));
    all_ranges_ = backend.split_items(static_cast<int>(pieces_.size()));
    staging_.resize(std::max(weight_ranges_.size(), all_ranges_.size()));
    for (std::vector<float>& host : staging_) host.resize(static_cast<std::size_t>(kPieceElements));
}

void ReplicaHasher::hash(bool state) {
    const std::vector<ShardRange>& ranges = state ? all_ranges_ : weight_ranges_;
    hashed_ = state ? pieces_.size() : weight_pieces_;
    backend_.for_each_range(ranges, [&](Stream& stream, int i) {
        float* const host = staging_[static_cast<std::size_t>(i)].data();
        const ShardRange range = ranges[static_cast<std::size_t>(i)];
        for (auto p = static_cast<std::size_t>(range.begin); p < static_cast<std::size_t>(range.end); ++p) {
            const std::size_t bytes = static_cast<std::size_t>(pieces_[p].count) * sizeof(float);
            backend_.download(stream, device_values(pieces_[p]), host, bytes);
            backend_.synchronize();
            hashes_[p] = hash64({reinterpret_cast<const std::byte*>(host), bytes});
        }
    });
}

uint64_t ReplicaHasher::sum_of(std::size_t first, std::size_t end) const {
    return hash64(std::as_bytes(std::span(hashes_).subspan(first, end - first)));
}

std::vector<float> ReplicaHasher::values(const ReplicaPiece& piece) const {
    std::vector<float> host(static_cast<std::size_t>(piece.count));
    backend_.download(backend_.main(), device_values(piece), host.data(), host.size() * sizeof(float));
    backend_.synchronize();
    return host;
}

std::string ReplicaHasher::element_name(const ReplicaPiece& piece, int64_t element) const {
    const Parameter& parameter = parameters_[piece.parameter];
    int64_t rest = file_element(parameter, piece.begin + element);
    std::vector<int64_t> index(parameter.shape.size());
    for (std::size_t axis = index.size(); axis-- > 0; rest /= parameter.shape[axis]) {
        index[axis] = rest % parameter.shape[axis];
    }
    return fmt::format("{}{}[{}]", arrays_[static_cast<std::size_t>(piece.array)].prefix, parameter.name,
                       fmt::join(index, ", "));
}

const float* ReplicaHasher::device_values(const ReplicaPiece& piece) const {
    return arrays_[static_cast<std::size_t>(piece.array)].values + parameters_[piece.parameter].offset + piece.begin;
}

}  // namespace lockstep

#include "train/tensor_hash.hpp"

#include <algorithm>

#include "core/hash.hpp"

namespace lockstep {
namespace {

uint64_t hash_of_values(const float* values, int64_t count) {
    return hash64(std::as_bytes(std::span(values, static_cast<std::size_t>(count))));
}

}  // namespace

TensorHasher::TensorHasher(const ParameterTable& parameters, Backend& backend) : backend_(backend), view_(backend) {
    for (const Parameter& parameter : parameters.placed()) {
        first_piece_.push_back(static_cast<int>(pieces_.size()));
        for (int64_t begin = 0; begin < parameter.count; begin += kHashPiece) {
            pieces_.push_back({parameter.offset + begin, std::min(kHashPiece, parameter.count - begin)});
        }
    }
    first_piece_.push_back(static_cast<int>(pieces_.size()));
    hashes_.resize(pieces_.size());
}

/// Some pieces at a time, which lie one behind the other.
void TensorHasher::hash_copies(const float* flat, int begin, int end) {
    constexpr int kAtOnce = 256;  // 4 MiB
    for (int first = begin; first < end; first += kAtOnce) {
        const int last = std::min(first + kAtOnce, end) - 1;
        const int64_t offset = pieces_[static_cast<std::size_t>(first)].offset;
        const Piece& behind = pieces_[static_cast<std::size_t>(last)];
        const float* const copy =
            view_.read(flat + offset, static_cast<std::size_t>(behind.offset + behind.count - offset));
        for (int i = first; i <= last; ++i) {
            const Piece& piece = pieces_[static_cast<std::size_t>(i)];
            hashes_[static_cast<std::size_t>(i)] = hash_of_values(copy + (piece.offset - offset), piece.count);
        }
    }
}

void TensorHasher::hash(const float* flat, int first, int end, std::span<uint64_t> out) {
    const int begin = first_piece_[static_cast<std::size_t>(first)];
    const int pieces = first_piece_[static_cast<std::size_t>(end)] - begin;
    if (backend_.host_sees_device()) {
        const std::vector<ShardRange> ranges = backend_.split_items(pieces);
        backend_.for_each_range(ranges, [&](Stream&, int r) {
            const ShardRange range = ranges[static_cast<std::size_t>(r)];
            for (int i = begin + range.begin; i < begin + range.end; ++i) {
                const Piece& piece = pieces_[static_cast<std::size_t>(i)];
                hashes_[static_cast<std::size_t>(i)] = hash_of_values(flat + piece.offset, piece.count);
            }
        });
    } else {
        hash_copies(flat, begin, begin + pieces);
    }
    for (int tensor = first; tensor < end; ++tensor) {
        const auto from = static_cast<std::size_t>(first_piece_[static_cast<std::size_t>(tensor)]);
        const auto to = static_cast<std::size_t>(first_piece_[static_cast<std::size_t>(tensor) + 1]);
        out[static_cast<std::size_t>(tensor)] = hash64(std::as_bytes(std::span(hashes_).subspan(from, to - from)));
    }
}

}  // namespace lockstep

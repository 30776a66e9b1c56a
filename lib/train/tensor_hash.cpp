#include "train/tensor_hash.hpp"

#include <algorithm>

#include "core/hash.hpp"

namespace lockstep {

TensorHasher::TensorHasher(const ParameterTable& parameters, Backend& backend) : backend_(backend) {
    for (const Parameter& parameter : parameters.all()) {
        first_piece_.push_back(static_cast<int>(pieces_.size()));
        for (int64_t begin = 0; begin < parameter.count; begin += kHashPiece) {
            pieces_.push_back({parameter.offset + begin, std::min(kHashPiece, parameter.count - begin)});
        }
    }
    first_piece_.push_back(static_cast<int>(pieces_.size()));
    hashes_.resize(pieces_.size());
}

void TensorHasher::hash(const float* flat, int first, int end, std::span<uint64_t> out) {
    const int begin = first_piece_[static_cast<std::size_t>(first)];
    const int pieces = first_piece_[static_cast<std::size_t>(end)] - begin;
    const std::vector<ShardRange> ranges = backend_.split_items(pieces);
    backend_.for_each_range(ranges, [&](Stream&, int r) {
        const ShardRange range = ranges[static_cast<std::size_t>(r)];
        for (int i = begin + range.begin; i < begin + range.end; ++i) {
            const Piece& piece = pieces_[static_cast<std::size_t>(i)];
            hashes_[static_cast<std::size_t>(i)] =
                hash64(std::as_bytes(std::span(flat + piece.offset, static_cast<std::size_t>(piece.count))));
        }
    });
    for (int tensor = first; tensor < end; ++tensor) {
        const auto from = static_cast<std::size_t>(first_piece_[static_cast<std::size_t>(tensor)]);
        const auto to = static_cast<std::size_t>(first_piece_[static_cast<std::size_t>(tensor) + 1]);
        out[static_cast<std::size_t>(tensor)] = hash64(std::as_bytes(std::span(hashes_).subspan(from, to - from)));
    }
}

}  // namespace lockstep

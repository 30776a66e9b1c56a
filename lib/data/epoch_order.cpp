#include "data/epoch_order.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace lockstep {
namespace {

__extension__ using Wide = unsigned __int128;

// Half-rounds of the network. Four make a pseudo-random permutation of a large grid (Luby and Rackoff 1988). A grid of
// a few cells needs more: with six, the frequencies of all orders of 5 samples are visibly uneven, with twelve nearly
// flat.
constexpr int kHalfRounds = 6;
constexpr int kHalfRoundsOfSmall = 12;
constexpr int64_t kSmall = 1024;

// The blocks, or all samples where there are no blocks; block number i has tag i + 1.
constexpr uint64_t kOuterTag = 0;

// Uniform in 0 … range-1, up to 2^-64 * range.
uint64_t round_value(uint64_t other_half, int round, PhiloxKey key, uint64_t tag, uint64_t range) {
    // A half stays below 2^32, since sizes stay below 2^63.
    const PhiloxCounter random = philox4x32({static_cast<uint32_t>(other_half), static_cast<uint32_t>(round),
                                             static_cast<uint32_t>(tag), static_cast<uint32_t>(tag >> 32)},
                                            key);
    const uint64_t bits = uint64_t{random[1]} << 32 | random[0];
    return static_cast<uint64_t>(Wide{bits} * range >> 64);
}

uint64_t add_modulo(uint64_t a, uint64_t b, uint64_t modulus) {
    return a + b >= modulus ? a + b - modulus : a + b;
}

int64_t ceiling_divide(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

// The smallest integer whose square is >= n. The floating-point root is a first guess only.
uint64_t ceiling_root(uint64_t n) {
    uint64_t root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
    while (Wide{root} * root < n) ++root;
    while (root > 1 && Wide{root - 1} * (root - 1) >= n) --root;
    return root;
}

int64_t length_of_last(int64_t samples, int64_t block) {
    return samples - (ceiling_divide(samples, block) - 1) * block;
}

// The high half of the epoch number takes the place of the stream, so that no two epochs share a key by construction.
PhiloxKey key_of_epoch(uint64_t seed, int64_t epoch, Purpose purpose) {
    const uint64_t number = static_cast<uint64_t>(epoch);
    return RandomStream(seed, purpose, number >> 32, static_cast<uint32_t>(number)).key();
}

int64_t checked_samples(int64_t samples, int64_t block) {
    if (samples < 1) fail(ErrorKind::kUsage, "an epoch of {} samples has no order: at least 1 is needed", samples);
    if (block < 1) fail(ErrorKind::kUsage, "shuffling in blocks of {} records: at least 1 is needed", block);
    return samples;
}

}  // namespace

EpochOrder::Bijection::Bijection(int64_t size_)
    : size(size_),
      rows(ceiling_root(static_cast<uint64_t>(size_))),
      columns((static_cast<uint64_t>(size_) + rows - 1) / rows),
      half_rounds(size_ <= kSmall ? kHalfRoundsOfSmall : kHalfRounds) {}

int64_t EpochOrder::Bijection::map(int64_t x, PhiloxKey key, uint64_t tag) const {
    if (size == 1) return 0;
    uint64_t cell = static_cast<uint64_t>(x);
    do {  // ends: the cells form a cycle through x, and x itself is < size
        uint64_t left = cell / columns;
        uint64_t right = cell % columns;
        for (int round = 0; round < half_rounds; round += 2) {
            left = add_modulo(left, round_value(right, round, key, tag, rows), rows);
            right = add_modulo(right, round_value(left, round + 1, key, tag, columns), columns);
        }
        cell = left * columns + right;
    } while (cell >= static_cast<uint64_t>(size));
    return static_cast<int64_t>(cell);
}

int64_t EpochOrder::Bijection::inverse(int64_t y, PhiloxKey key, uint64_t tag) const {
    if (size == 1) return 0;
    uint64_t cell = static_cast<uint64_t>(y);
    do {
        uint64_t left = cell / columns;
        uint64_t right = cell % columns;
        for (int round = half_rounds; round > 0; round -= 2) {
            right = add_modulo(right, columns - round_value(left, round - 1, key, tag, columns), columns);
            left = add_modulo(left, rows - round_value(right, round - 2, key, tag, rows), rows);
        }
        cell = left * columns + right;
    } while (cell >= static_cast<uint64_t>(size));
    return static_cast<int64_t>(cell);
}

EpochOrder::EpochOrder(uint64_t seed, int64_t epoch, int64_t samples, Shuffle shuffle, int64_t block, Purpose purpose)
    : shuffle_(shuffle),
      key_(key_of_epoch(seed, epoch, purpose)),
      block_(std::min(checked_samples(samples, block), block)),
      outer_(shuffle == Shuffle::kBlock ? ceiling_divide(samples, block_) : samples),
      whole_(block_),
      last_(length_of_last(samples, block_)) {
    if (shuffle_ == Shuffle::kBlock) last_slot_ = outer_.inverse(outer_.size - 1, key_, kOuterTag);
}

int64_t EpochOrder::index(int64_t position) const {
    switch (shuffle_) {
        case Shuffle::kNone:
            return position;
        case Shuffle::kFull:
            return outer_.map(position, key_, kOuterTag);
        case Shuffle::kBlock:
            return index_in_blocks(position);
    }
    return position;
}

int64_t EpochOrder::index_in_blocks(int64_t position) const {
    // Every block before the last block's slot is whole, and so is every block after it.
    const int64_t last_begin = last_slot_ * block_;
    const bool after_last = position >= last_begin + last_.size;
    const int64_t even = after_last ? position + (block_ - last_.size) : position;  // as if the last block were whole
    const int64_t number = outer_.map(even / block_, key_, kOuterTag);
    const Bijection& within = number == outer_.size - 1 ? last_ : whole_;
    return number * block_ + within.map(even % block_, key_, static_cast<uint64_t>(number) + 1);
}

}  // namespace lockstep

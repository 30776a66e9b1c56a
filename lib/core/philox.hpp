// Counter-based randomness (Philox 4x32-10; Salmon, Moraes, Dror, Shaw, SC11). A value is a function of
// (seed, purpose, stream, epoch, position, element) and of nothing else: no rank, thread, clock or order of calls.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// One block: ten rounds of Philox 4x32. Known-answer vectors are in the test.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

/// What a random number is for. The numbers are part of arithmetic 1: append, never renumber.
enum class Purpose : uint32_t {
    kEpochOrder = 1,
    kInitialWeights = 2,
    kDropout = 3,
    kSyntheticTeacher = 4,
    kSyntheticSample = 5,
    kValidationSplit = 6,
    kAugmentation = 7,
};

/// A family of random values: the key is philox(counter {purpose, stream lo, stream hi, epoch}, key seed)[0..1].
class RandomStream {
  public:
    /// `stream` tells apart what shares a purpose: a layer number, or stream_id(parameter name).
    RandomStream(uint64_t seed, Purpose purpose, uint64_t stream = 0, uint32_t epoch = 0);
    /// Four 32-bit values: elements 4*block … 4*block+3 at `position`; counter {block lo, block hi, position lo,
    /// position hi}.
    PhiloxCounter block(uint64_t block, uint64_t position = 0) const;
    uint32_t bits(uint64_t element, uint64_t position = 0) const { return block(element / 4, position)[element % 4]; }
    PhiloxKey key() const { return key_; }

  private:
    PhiloxKey key_;
};

/// A stream number from a name: FNV-1a, 64 bits.
uint64_t stream_id(std::string_view name);

}  // namespace lockstep

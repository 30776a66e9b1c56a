#include "core/philox.hpp"

namespace lockstep {
namespace {

// The multipliers and Weyl increments of the paper (table 2 and section 4.3).
constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

uint32_t low(uint64_t value) {
    return static_cast<uint32_t>(value);
}
uint32_t high(uint64_t value) {
    return static_cast<uint32_t>(value >> 32);
}

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey key) {
    for (int round = 0; round < kRounds; ++round) {
        const uint64_t product0 = uint64_t{kMultiplier0} * c[0];
        const uint64_t product1 = uint64_t{kMultiplier1} * c[2];
        c = {high(product1) ^ c[1] ^ key[0], low(product1), high(product0) ^ c[3] ^ key[1], low(product0)};
        key[0] += kWeyl0;
        key[1] += kWeyl1;
    }
    return c;
}

RandomStream::RandomStream(uint64_t seed, Purpose purpose, uint64_t stream, uint32_t epoch) {
    const PhiloxCounter made =
        philox4x32({static_cast<uint32_t>(purpose), low(stream), high(stream), epoch}, {low(seed), high(seed)});
    key_ = {made[0], made[1]};
}

PhiloxCounter RandomStream::block(uint64_t block, uint64_t position) const {
    return philox4x32({low(block), high(block), low(position), high(position)}, key_);
}

uint64_t stream_id(std::string_view name) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char letter : name) {
        hash ^= static_cast<unsigned char>(letter);
        hash *= 0x100000001b3;
    }
    return hash;
}

}  // namespace lockstep

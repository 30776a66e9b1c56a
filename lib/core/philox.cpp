#include "core/philox.hpp"

#include "core/philox_rounds.hpp"

namespace lockstep {
namespace {

uint32_t low(uint64_t value) {
    return static_cast<uint32_t>(value);
}
uint32_t high(uint64_t value) {
    return static_cast<uint32_t>(value >> 32);
}

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
    uint32_t words[4] = {counter[0], counter[1], counter[2], counter[3]};
    philox_rounds(words, key[0], key[1]);
    return {words[0], words[1], words[2], words[3]};
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

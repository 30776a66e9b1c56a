// The ten rounds of Philox 4x32 (Salmon, Moraes, Dror, Shaw, SC11), for host and GPU: philox.hpp and the dropout kernel
// are both made of them.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace lockstep {

/// Turns a counter into its four random words. Multipliers and Weyl increments are those of the paper (table 2 and
/// section 4.3).
LOCKSTEP_HOST_DEVICE inline void philox_rounds(uint32_t (&c)[4], uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t product0 = uint64_t{0xD2511F53} * c[0];
        const uint64_t product1 = uint64_t{0xCD9E8D57} * c[2];
        c[0] = static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key0;
        c[1] = static_cast<uint32_t>(product1);
        c[2] = static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key1;
        c[3] = static_cast<uint32_t>(product0);
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
}

}  // namespace lockstep

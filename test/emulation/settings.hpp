// What the emulated machine is like: how many devices, of which kind, and in which order streams and threads run. Read
// once from LOCKSTEP_EMULATION_* variables; a test may change it while nothing runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::emulation {

/// When work on a stream runs. Lazy: only what a waiting host thread needs (all of it after 20 ms of host silence, as a
/// device would), so that a missing wait reads old memory. Eager: at once. Random: by chance, streams in any order.
enum class Order { kLazy, kEager, kRandom };

/// kMissing: no driver. kOld: a driver too old for the runtime. kNoDevice: a driver without a device.
enum class Driver { kPresent, kMissing, kOld, kNoDevice };

struct Settings {
    Order order = Order::kLazy;                  // LOCKSTEP_EMULATION_ORDER = lazy | eager | random
    std::uint64_t seed = 0;                      // LOCKSTEP_EMULATION_SEED: order of blocks, threads and streams
    int devices = 8;                             // LOCKSTEP_EMULATION_DEVICES: in the machine
    std::vector<int> visible;                    // CUDA_VISIBLE_DEVICES: which of them the process sees, in its order
    int arch = 90;                               // LOCKSTEP_EMULATION_ARCH = 70 | 75 | 80 | 86 | 89 | 90 | 100
    std::size_t memory = std::size_t{16} << 30;  // LOCKSTEP_EMULATION_MEMORY: bytes of a device; K, M, G as suffix
    std::size_t library_memory = 0;              // that cuBLAS, cuDNN and NCCL must find free where they are opened
    Driver driver = Driver::kPresent;            // LOCKSTEP_EMULATION_DRIVER = present | missing | old | no-device
};

/// The settings of this process. A variable with a value that is not listed ends the process with one line.
Settings& settings();

/// A number that depends on the seed and on `counter` alone.
std::uint64_t seeded(std::uint64_t counter);

}  // namespace lockstep::emulation

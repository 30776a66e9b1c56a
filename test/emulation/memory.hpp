// Device memory that a mistake cannot use unnoticed. An address that cudaMalloc gives is reserved and never accessible:
// host code that follows it faults. Kernels and copies reach the same bytes through a second mapping (translate). Every
// block ends at an inaccessible page, up to 255 bytes of slack before it hold a known number, and addresses are never
// used twice, so that freed memory stays recognisable. Pinned host memory is laid out alike, in one mapping.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace lockstep::emulation {

enum class MemoryKind { kDevice, kPinned };

/// A live block. `pointer` is what the program under test holds.
struct MemoryBlock {
    MemoryKind kind = MemoryKind::kDevice;
    int device = 0;
    char* pointer = nullptr;
    std::size_t bytes = 0;
};

class MemorySpace {
  public:
    MemorySpace(MemoryKind kind, std::size_t reserve);

    /// nullptr where the host has no memory left.
    void* allocate(std::size_t bytes, int device);
    /// Fails on anything but the start of a live block, and on a block whose slack was written to.
    void release(void* pointer);
    /// Releases all blocks of a device without a look at them.
    void release_all(int device);
    /// Fails if the slack of any block was written to.
    void check_slack(int device);
    /// The same for the block that holds `pointer`, if one does.
    void check_slack_around(const void* pointer);

    bool contains(const void* pointer) const;
    /// The block that holds `pointer`; false if none does.
    bool find(const void* pointer, MemoryBlock& block);
    /// The bytes behind [pointer, pointer + bytes); fails, saying what is wrong, unless one live block holds them all.
    char* resolve(const void* pointer, std::size_t bytes, MemoryBlock& block);
    std::size_t used(int device);
    /// What lies at an address of the second mapping that faulted: "" if it is not in this space.
    std::string describe_fault(const void* address);

  private:
    struct Block {
        std::size_t bytes, padded, front, start;  // front: padding before the block, from a page's border
        int device;
    };
    using Blocks = std::map<std::size_t, Block>;
    Blocks::iterator block_at(Blocks& blocks, std::size_t offset);
    void check(std::size_t offset, const Block& block, std::size_t front);
    void erase(Blocks::iterator block);

    MemoryKind kind_;
    std::size_t reserve_;
    char* user_;     // addresses that the program sees
    char* storage_;  // the bytes behind them; the same for pinned memory
    std::size_t top_;
    std::mutex mutex_;
    Blocks live_, freed_;
    std::map<int, std::size_t> used_;
};

MemorySpace& device_memory();
MemorySpace& pinned_memory();

/// Whether settings().library_memory is more than the current device has free.
bool libraries_lack_memory();

}  // namespace lockstep::emulation

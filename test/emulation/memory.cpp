// Guarded blocks in two reserved address ranges; see memory.hpp for why.
#include "test/emulation/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "test/emulation/runtime.hpp"
#include "test/emulation/sanitizer.hpp"
#include "test/emulation/settings.hpp"

namespace lockstep::emulation {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlign = 256;  // what cudaMalloc promises
constexpr std::size_t kReserve = std::size_t{1} << 38;
// The slack holds a number, not a not-a-number: a kernel that reads and writes past its end would put the same
// not-a-number back. A number near one (float 0.0115, half 1.06): a large one would swallow what is added to it.
constexpr unsigned char kSlack = 0x3C;
constexpr int kFrontChecked = 256;

std::size_t round_up(std::size_t n, std::size_t unit) {
    return (n + unit - 1) / unit * unit;
}

char* reserve(std::size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        std::fprintf(stderr, "emulated CUDA: cannot reserve %zu bytes of addresses (ulimit -v?)\n", bytes);
        std::_Exit(2);
    }
    return static_cast<char*>(p);
}

const char* name(MemoryKind kind) {
    return kind == MemoryKind::kDevice ? "device" : "pinned host";
}

}  // namespace

MemorySpace::MemorySpace(MemoryKind kind, std::size_t reserved)
    : kind_(kind),
      reserve_(reserved),
      user_(reserve(reserved)),
      storage_(kind == MemoryKind::kDevice ? reserve(reserved) : user_),
      top_(kPage) {}

void* MemorySpace::allocate(std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    if (bytes > reserve_) return nullptr;  // no host has it: refused, as any other lack of memory
    const std::size_t padded = round_up(bytes, kAlign), span = round_up(padded, kPage);
    if (top_ + span + kPage > reserve_) fail(cudaErrorMemoryAllocation, "the emulation's addresses are used up");
    if (mprotect(storage_ + top_, span, PROT_READ | PROT_WRITE) != 0) return nullptr;
    const Block block{bytes, padded, span - padded, top_, device};
    const std::size_t offset = top_ + block.front;
    std::memset(storage_ + top_, kSlack, block.front);
    fill_nan(storage_ + offset, bytes);
    std::memset(storage_ + offset + bytes, kSlack, padded - bytes);
    poison(storage_ + top_, block.front);
    poison(storage_ + offset + bytes, padded - bytes);
    top_ += span + kPage;
    live_.emplace(offset, block);
    used_[device] += padded;
    return user_ + offset;
}

void MemorySpace::release(void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto offset = static_cast<std::size_t>(static_cast<char*>(pointer) - user_);
    const auto block = contains(pointer) ? live_.find(offset) : live_.end();
    if (block == live_.end()) {
        const bool twice = contains(pointer) && freed_.contains(offset);
        fail(cudaErrorInvalidValue, fmt::format("{} memory is freed {}", name(kind_),
                                                twice ? "twice" : "at an address that was never allocated"));
    }
    check(offset, block->second, block->second.front);
    erase(block);
}

void MemorySpace::release_all(int device) {
    const std::lock_guard lock(mutex_);
    for (auto block = live_.begin(); block != live_.end();) {
        const auto current = block++;
        if (current->second.device == device) erase(current);
    }
}

void MemorySpace::erase(Blocks::iterator block) {
    const Block& b = block->second;
    unpoison(storage_ + b.start, b.front + b.padded);
    madvise(storage_ + b.start, b.front + b.padded, MADV_DONTNEED);
    mprotect(storage_ + b.start, b.front + b.padded, PROT_NONE);
    used_[b.device] -= b.padded;
    freed_.insert(*block);
    live_.erase(block);
}

void MemorySpace::check_slack(int device) {
    const std::lock_guard lock(mutex_);
    for (const auto& [offset, block] : live_) {
        if (block.device == device) check(offset, block, kFrontChecked);
    }
}

void MemorySpace::check_slack_around(const void* pointer) {
    if (!contains(pointer)) return;
    const std::lock_guard lock(mutex_);
    const auto block = block_at(live_, static_cast<std::size_t>(static_cast<const char*>(pointer) - user_));
    if (block != live_.end()) check(block->first, block->second, kFrontChecked);
}

void MemorySpace::check(std::size_t offset, const Block& block, std::size_t front) {
    if (kAddressSanitizer) return;  // the padding is poisoned: its writer was stopped at the exact line
    const auto* bytes = reinterpret_cast<const unsigned char*>(storage_ + offset);
    for (std::size_t i = block.bytes; i < block.padded; ++i) {
        if (bytes[i] != kSlack) {
            fail(cudaErrorIllegalAddress,
                 fmt::format("{} memory was written past the end of a block of {} bytes, at byte {}", name(kind_),
                             block.bytes, i));
        }
    }
    for (std::size_t i = 1; i <= std::min(front, block.front); ++i) {
        if (*(bytes - i) != kSlack) {
            fail(cudaErrorIllegalAddress,
                 fmt::format("{} memory was written {} bytes before the start of a block of {} bytes", name(kind_), i,
                             block.bytes));
        }
    }
}

bool MemorySpace::contains(const void* pointer) const {
    const auto* p = static_cast<const char*>(pointer);
    return p >= user_ && p < user_ + reserve_;
}

MemorySpace::Blocks::iterator MemorySpace::block_at(Blocks& blocks, std::size_t offset) {
    auto next = blocks.upper_bound(offset);
    if (next == blocks.begin()) return blocks.end();
    const auto block = std::prev(next);
    return offset < block->first + block->second.padded ? block : blocks.end();
}

bool MemorySpace::find(const void* pointer, MemoryBlock& found) {
    if (!contains(pointer)) return false;
    const std::lock_guard lock(mutex_);
    const auto block = block_at(live_, static_cast<std::size_t>(static_cast<const char*>(pointer) - user_));
    if (block == live_.end()) return false;
    found = {kind_, block->second.device, user_ + block->first, block->second.bytes};
    return true;
}

char* MemorySpace::resolve(const void* pointer, std::size_t bytes, MemoryBlock& found) {
    const std::lock_guard lock(mutex_);
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(pointer) - user_);
    const auto block = block_at(live_, offset);
    if (block == live_.end()) {
        const auto freed = block_at(freed_, offset);
        if (freed != freed_.end()) {
            fail(cudaErrorIllegalAddress, fmt::format("{} memory is used after it was freed (a block of {} bytes)",
                                                      name(kind_), freed->second.bytes));
        }
        fail(cudaErrorIllegalAddress, fmt::format("{} bytes at an address that is no {} memory", bytes, name(kind_)));
    }
    const std::size_t at = offset - block->first;
    if (at + bytes > block->second.bytes) {
        fail(cudaErrorIllegalAddress, fmt::format("{} bytes from byte {} on of a block of {} bytes of {} memory", bytes,
                                                  at, block->second.bytes, name(kind_)));
    }
    found = {kind_, block->second.device, user_ + block->first, block->second.bytes};
    return storage_ + offset;
}

std::size_t MemorySpace::used(int device) {
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(device);
    return found == used_.end() ? 0 : found->second;
}

std::string MemorySpace::describe_fault(const void* address) {
    const auto* p = static_cast<const char*>(address);
    if (p < storage_ || p >= storage_ + reserve_) return "";
    const std::lock_guard lock(mutex_);
    const auto offset = static_cast<std::size_t>(p - storage_);
    if (const auto freed = block_at(freed_, offset); freed != freed_.end()) {
        return fmt::format("{} memory was used after it was freed (a block of {} bytes)", name(kind_),
                           freed->second.bytes);
    }
    const auto next = live_.upper_bound(offset);
    if (next != live_.end() && next->first - offset <= kPage) {
        return fmt::format("{} memory was used {} bytes before the start of a block of {} bytes", name(kind_),
                           next->first - offset, next->second.bytes);
    }
    if (next == live_.begin()) return fmt::format("an address that is no {} memory", name(kind_));
    const auto before = std::prev(next);
    return fmt::format("{} memory was used at byte {} of a block of {} bytes", name(kind_), offset - before->first,
                       before->second.bytes);
}

MemorySpace& device_memory() {
    static MemorySpace space(MemoryKind::kDevice, kReserve);
    return space;
}

MemorySpace& pinned_memory() {
    static MemorySpace space(MemoryKind::kPinned, kReserve);
    return space;
}

bool libraries_lack_memory() {
    const std::size_t used = device_memory().used(current_device()), limit = settings().memory;
    return settings().library_memory > (used < limit ? limit - used : 0);
}

void fill_nan(void* memory, std::size_t bytes) {
    std::memset(memory, 0xFF, bytes);
}

void* translate(const void* pointer, std::size_t bytes) {
    MemoryBlock block;
    if (device_memory().contains(pointer)) {
        char* storage = device_memory().resolve(pointer, bytes, block);
        if (block.device != current_device()) {
            fail(cudaErrorIllegalAddress,
                 fmt::format("memory of device {} is used on device {}", block.device, current_device()));
        }
        return storage;
    }
    if (pinned_memory().contains(pointer)) return pinned_memory().resolve(pointer, bytes, block);
    fail(cudaErrorIllegalAddress, "a host pointer that is not pinned is used on the device");
}

}  // namespace lockstep::emulation

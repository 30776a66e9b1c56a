// See shared_memory.hpp.
#include "test/emulation/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/emulation/runtime.hpp"
#include "test/emulation/sanitizer.hpp"

namespace lockstep::emulation {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStaticMemory = 128 << 10;  // 48 KiB of arrays and their gaps
constexpr std::size_t kDynamicMemory = 256 << 10;
constexpr std::size_t kStaticLimit = 48 << 10;  // the language's limit, whatever the device offers
constexpr std::size_t kGap = 64;
constexpr unsigned char kGapByte = 0x6B;

}  // namespace

SharedMemory::SharedMemory() {
    void* p = mmap(nullptr, kStaticMemory + kDynamicMemory + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED || mprotect(static_cast<char*>(p) + kStaticMemory + kDynamicMemory, kPage, PROT_NONE) != 0) {
        std::fprintf(stderr, "emulated CUDA: no memory for shared memory\n");
        std::_Exit(2);
    }
    memory_ = static_cast<char*>(p);
}

SharedMemory::~SharedMemory() {
    unpoison(memory_, kStaticMemory);
    munmap(memory_, kStaticMemory + kDynamicMemory + kPage);
}

void SharedMemory::begin_grid(std::size_t dynamic_bytes, std::size_t limit) {
    unpoison(memory_, static_end_);
    arrays_.clear();
    static_bytes_ = static_end_ = 0;
    limit_ = limit;
    dynamic_bytes_ = dynamic_bytes;
    dynamic_ = memory_ + kStaticMemory + kDynamicMemory - (dynamic_bytes + 15) / 16 * 16;
}

void SharedMemory::begin_block() {
    for (const Array& a : arrays_) fill_nan(memory_ + a.offset, a.bytes);
    if (dynamic_bytes_ != 0) fill_nan(dynamic_, dynamic_bytes_);
}

void SharedMemory::end_block() {
    if (kAddressSanitizer) return;
    for (const Array& a : arrays_) {
        const auto* gap = reinterpret_cast<const unsigned char*>(memory_ + a.offset + a.bytes);
        if (std::any_of(gap, gap + kGap, [](unsigned char byte) { return byte != kGapByte; })) {
            fail(cudaErrorIllegalAddress,
                 fmt::format("a kernel writes past the end of a shared array of {} bytes", a.bytes));
        }
    }
}

void* SharedMemory::array(const void* identity, std::size_t bytes, std::size_t alignment) {
    for (const Array& a : arrays_) {
        if (a.identity == identity) return memory_ + a.offset;
    }
    return add(identity, bytes, alignment);
}

void* SharedMemory::add(const void* identity, std::size_t bytes, std::size_t alignment) {
    static_bytes_ = (static_bytes_ + alignment - 1) / alignment * alignment + bytes;
    if (static_bytes_ > kStaticLimit) {
        fail(cudaErrorInvalidValue, fmt::format("a kernel declares {} bytes of static shared memory; {} is the limit",
                                                static_bytes_, kStaticLimit));
    }
    if (static_bytes_ + dynamic_bytes_ > limit_) {
        fail(cudaErrorInvalidValue,
             fmt::format("a kernel uses {} bytes of static and {} bytes of dynamic shared memory; {} are allowed",
                         static_bytes_, dynamic_bytes_, limit_));
    }
    const std::size_t unit = std::max<std::size_t>(alignment, 16);
    const std::size_t offset = (static_end_ + unit - 1) / unit * unit;
    if (offset + bytes + kGap > kStaticMemory) fail("a kernel declares too many shared arrays for the emulation");
    fill_nan(memory_ + offset, bytes);
    std::memset(memory_ + offset + bytes, kGapByte, kGap);
    poison(memory_ + offset + bytes, kGap);
    static_end_ = offset + bytes + kGap;
    arrays_.push_back({identity, offset, bytes});
    return memory_ + offset;
}

void* SharedMemory::dynamic() {
    if (dynamic_bytes_ == 0)
        fail(cudaErrorInvalidValue, "a kernel uses dynamic shared memory and was launched with none");
    return dynamic_;
}

}  // namespace lockstep::emulation

#include "backend/cpu/cpu_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void fail_allocation(std::size_t bytes) {
    fail(ErrorKind::kRuntime,
         "out of memory: cannot allocate {} MiB; use a smaller batch or model, or more ranks per job", bytes >> 20);
}

std::byte* allocate_small(std::size_t bytes) {
    void* memory = ::operator new (std::max(bytes, kAlignment), std::align_val_t{kAlignment}, std::nothrow);
    if (memory == nullptr) fail_allocation(bytes);
    std::memset(memory, 0, std::max(bytes, kAlignment));
    return static_cast<std::byte*>(memory);
}

/// A mapping that starts and ends at a huge page: one is taken that is larger by a page, and its ends given back.
std::byte* allocate_huge(std::size_t bytes) {
    const std::size_t length = round_up(bytes, kHugePage);
    void* mapped = mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) fail_allocation(bytes);
    auto* begin = static_cast<std::byte*>(mapped);
    const std::size_t lead =
        round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) - reinterpret_cast<std::uintptr_t>(begin);
    if (lead > 0) munmap(begin, lead);
    munmap(begin + lead + length, kHugePage - lead);
    begin += lead;
    madvise(begin, length, MADV_HUGEPAGE);  // advice: a kernel without huge pages is only slower
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < bytes; at += page) *const_cast<volatile std::byte*>(begin + at) = std::byte{0};
    return begin;
}

}  // namespace

CpuMemory::CpuMemory(std::size_t bytes)
    : data_(bytes < kHugePage ? allocate_small(bytes) : allocate_huge(bytes)), bytes_(bytes) {}

CpuMemory::~CpuMemory() {
    if (data_ == nullptr) return;
    if (bytes_ < kHugePage) {
        ::operator delete (data_, std::align_val_t{kAlignment});
    } else {
        munmap(data_, round_up(bytes_, kHugePage));
    }
}

CpuMemory::CpuMemory(CpuMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

CpuMemory& CpuMemory::operator=(CpuMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

}  // namespace lockstep

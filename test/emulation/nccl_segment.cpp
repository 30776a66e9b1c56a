#include "test/emulation/nccl_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

namespace lockstep::emulation {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "processes share these");

const char* type_name(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
            return "ncclInt8";
        case ncclUint8:
            return "ncclUint8";
        case ncclFloat32:
            return "ncclFloat32";
        default:
            return "an unknown type";
    }
}

// Files of the ids made here and not yet closed: the state of a C library.
std::mutex open_mutex;
std::map<std::string, int> open_files;

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
            return 1;
        case ncclFloat32:
            return 4;
        default:
            return 0;
    }
}

std::string NcclHeader::text() const {
    if (kind == Kind::kSend) return fmt::format("a message of {} x {}", count, type_name(type));
    return fmt::format("ncclAllReduce number {} of {} x {}", number, count, type_name(type));
}

int NcclSegment::joined(int size) const {
    int count = 0;
    for (int rank = 0; rank < size; ++rank) {
        count += ranks[static_cast<std::size_t>(rank)].here.load(std::memory_order_acquire) != 0 ? 1 : 0;
    }
    return count;
}

void NcclSegment::break_with(const std::string& why) {
    std::uint32_t whole = 0;
    if (!broken.compare_exchange_strong(whole, 1)) return;
    std::snprintf(reason.data(), reason.size(), "%s", why.c_str());
    broken.store(2, std::memory_order_release);
}

ncclUniqueId make_unique_id() {
    ncclUniqueId id{};
    const int file = memfd_create("lockstep-emulated-nccl", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(NcclSegment)) != 0) {
        if (file >= 0) close(file);
        return id;
    }
    std::snprintf(id.internal, sizeof id.internal, "/proc/%d/fd/%d", static_cast<int>(getpid()), file);
    const std::lock_guard lock(open_mutex);
    open_files[id.internal] = file;
    return id;
}

std::shared_ptr<NcclSegment> open_segment(const ncclUniqueId& id) {
    const int file = open(id.internal, O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    void* memory = mmap(nullptr, sizeof(NcclSegment), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return nullptr;
    // Zeroed pages are a segment in its first state.
    return {static_cast<NcclSegment*>(memory), [](NcclSegment* segment) { munmap(segment, sizeof(NcclSegment)); }};
}

void close_unique_id(const ncclUniqueId& id) {
    const std::lock_guard lock(open_mutex);
    const auto found = open_files.find(id.internal);
    if (found == open_files.end()) return;
    close(found->second);
    open_files.erase(found);
}

}  // namespace lockstep::emulation

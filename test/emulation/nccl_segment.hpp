// The memory through which the ranks of an emulated NCCL communicator meet: one segment for each unique id, shared by
// threads and by processes. It is an anonymous file that the id names by its place under /proc, so that nothing is left
// behind however a rank ends.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::emulation {

inline constexpr int kNcclRanks = 16;
inline constexpr std::size_t kNcclChunk = std::size_t{64} << 10;

/// What a rank calls, told with each message, so that calls that do not belong together are found and not added up.
struct NcclHeader {
    enum class Kind : std::uint32_t { kSend, kAllReduce } kind = Kind::kSend;
    ncclDataType_t type = ncclUint8;
    std::uint64_t count = 0;
    std::uint64_t number = 0;  // of the all-reduce on its communicator
    bool operator==(const NcclHeader&) const = default;
    std::string text() const;  // "ncclSend of 12 x ncclFloat32"
};

std::size_t bytes_of(ncclDataType_t type);

/// From one rank to another: empty, or full of one chunk of a message until the receiver has taken it. A message is
/// sent when its last chunk is taken: a rendezvous, as on a GPU, where a send may wait for its receive.
struct NcclSlot {
    std::atomic<std::uint32_t> full;
    NcclHeader header;
    std::uint64_t chunk;
    std::array<std::byte, kNcclChunk> data;
};

struct NcclSegment {
    struct Rank {
        std::atomic<std::uint32_t> here;
        std::int32_t size;  // of the communicator, as this rank sees it
        std::array<char, 48> device;
    };
    std::atomic<std::uint32_t> broken;  // 1: being written, 2: `reason` says why
    std::array<char, 400> reason;
    std::array<Rank, kNcclRanks> ranks;
    std::array<NcclSlot, kNcclRanks * kNcclRanks> slots;

    NcclSlot& slot(int from, int to) { return slots[static_cast<std::size_t>(from * kNcclRanks + to)]; }
    int joined(int size) const;
    /// The first reason stays.
    void break_with(const std::string& why);
    bool is_broken() const { return broken.load(std::memory_order_acquire) == 2; }
};

/// A new segment. Its file stays open in this process until close_unique_id().
ncclUniqueId make_unique_id();
/// The segment behind an id, mapped for this rank; null where the process that made the id is gone.
std::shared_ptr<NcclSegment> open_segment(const ncclUniqueId& id);
/// All ranks have the segment: the process that made it lets its file go.
void close_unique_id(const ncclUniqueId& id);

}  // namespace lockstep::emulation

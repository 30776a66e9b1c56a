// Messages of one NCCL call or group under way. Polled from the device's executor, never blocking: other streams of the
// device run meanwhile, as they do on a GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "test/emulation/nccl_segment.hpp"

namespace lockstep::emulation {

/// What queued work and the host's calls share of a communicator.
struct NcclState {
    std::shared_ptr<NcclSegment> segment;
    int size = 1;
    int rank = 0;
    double timeout_s = 60;
    std::atomic<bool> aborted = false;
    std::atomic<int> queued = 0;  // groups on the stream that have not ended

    /// The first failure stays.
    void fail_with(ncclResult_t code, const std::string& why);
    ncclResult_t failure() const;
    std::string reason() const;

  private:
    mutable std::mutex mutex_;
    ncclResult_t failure_ = ncclSuccess;
    std::string reason_;
};

struct NcclMessage {
    bool sends = false;
    int peer = 0;
    void* memory = nullptr;  // of the device; translated when the group begins to run
    std::size_t bytes = 0;
    NcclHeader header;
};

class NcclExchange {
  public:
    NcclExchange(std::shared_ptr<NcclState> state, std::vector<NcclMessage> messages);

    /// Moves what can be moved; true when all is done or the communicator is aborted. Fails where a peer calls
    /// something else, or does not come before the deadline.
    bool poll();

  private:
    struct Progress {
        std::size_t moved = 0;
        bool begun = false;  // the first chunk is on its way
        bool done = false;
    };
    bool move(std::size_t index);
    bool send_some(const NcclMessage& message, Progress& progress);
    bool receive_some(const NcclMessage& message, Progress& progress);
    bool waits_for_earlier(std::size_t index) const;
    [[noreturn]] void give_up() const;

    using Clock = std::chrono::steady_clock;
    std::shared_ptr<NcclState> state_;
    std::vector<NcclMessage> messages_;
    std::vector<Progress> progress_;
    std::size_t left_;
    bool started_ = false;
    Clock::time_point since_;
};

}  // namespace lockstep::emulation

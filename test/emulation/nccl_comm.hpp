// A communicator of the emulated NCCL and what is in progress on it: joining, handing calls to the stream, finalizing.
#pragma once

#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "test/emulation/nccl_exchange.hpp"

namespace lockstep::emulation {

/// A call that goes onto a stream.
struct NcclCall {
    bool reduces = false;  // ncclAllReduce, else ncclSend or ncclRecv
    NcclMessage message;   // of the all-reduce: memory is what is read
    void* result = nullptr;
    cudaStream_t stream = nullptr;
};

/// Prints and keeps the message, which ncclGetLastError then gives.
ncclResult_t refuse_nccl(ncclResult_t code, const std::string& message);
const char* last_nccl_refusal();

}  // namespace lockstep::emulation

struct ncclComm {
    enum class Phase { kJoining, kReady, kLaunching, kFinalizing, kFinal };

    /// Enters a phase and waits for its end, or leaves that to the caller's polls where the communicator must not
    /// block.
    ncclResult_t begin(Phase next);
    /// One look at what is in progress.
    ncclResult_t advance();

    std::shared_ptr<lockstep::emulation::NcclState> state;
    ncclUniqueId id;
    bool blocking = true;
    Phase phase = Phase::kJoining;
    int polls = 0;  // until the next step of the phase
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
    std::uint64_t reduced = 0;  // collectives so far
    std::vector<lockstep::emulation::NcclCall> launching;
    std::string last_error;  // what ncclGetLastError has given out

  private:
    void push();
    ncclResult_t join();
    ncclResult_t check_ranks();
};

// A communicator of the NCCL library that never blocks a host thread without a deadline: calls return at once, and
// whoever must know that one has ended polls.
#pragma once

#include <nccl.h>

#include <source_location>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

/// "2.28.9", of the library that is loaded.
std::string nccl_version();

class NcclHandle {
  public:
    /// Collective over `host`, whose rank 0 tells the others where to meet. The current device is this rank's; two
    /// ranks on one device are an error.
    explicit NcclHandle(Communicator& host);
    /// In order: ends what is under way, within the job's deadline. While unwinding: gives it up.
    ~NcclHandle();
    NcclHandle(const NcclHandle&) = delete;
    NcclHandle& operator=(const NcclHandle&) = delete;

    /// Throws kRuntime after give_up().
    ncclComm_t get() const;
    /// Waits until what was begun last stands in the stream's queue: NCCL may connect to a peer first, which needs that
    /// one too. Deadline and news are the job's; throws kRuntime where the library reports an error.
    void await();
    /// Throws kRuntime where the library has found an error by itself.
    void check_async(const char* what) const;
    /// What is on the stream ends at once, and nothing more can be exchanged. Never throws.
    void give_up() noexcept;

  private:
    bool finalize();

    Communicator& host_;
    int unwinding_;
    ncclComm_t comm_ = nullptr;
};

/// A call of a communicator that does not block may say that it is in progress, also within a group.
inline bool nccl_failed(ncclResult_t result) {
    return result != ncclSuccess && result != ncclInProgress;
}
/// Throws kRuntime with the call, the library's words and the place where it failed.
void nccl_check(ncclResult_t result, const char* call, ncclComm_t comm = nullptr,
                std::source_location where = std::source_location::current());

}  // namespace lockstep

// Messages of device memory through pinned host memory and the host's communicator: what two ranks on one GPU use, what
// serves where NCCL is absent, and what lets CPU ranks and GPU ranks work in one job.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace lockstep {

/// send, receive and all_reduce_native take memory of the device, in the order of `stream` (of the CUDA backend): a
/// message leaves with what the work queued before has written, and work queued after a receive's test() was true finds
/// what arrived. No test() waits for the device. On the wire it is `host`, with the same tags, lengths and bytes, so
/// that the other side may be a CPU rank on `host` itself. Everything else is host's: deadlines, news, collectives on
/// host memory. Both must outlive it, and while messages are under way `host` is used through it alone.
std::unique_ptr<Communicator> make_staged_communicator(Communicator& host, Stream& stream);

}  // namespace lockstep

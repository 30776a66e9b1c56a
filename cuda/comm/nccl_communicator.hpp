// Messages of device memory from GPU to GPU by NCCL, in the order of a CUDA stream.
//
// send() and receive() only note a message. The first test() of any of them hands all that were noted to NCCL as one
// group, and from then on every test() is true: the message stands in the stream's queue, and what is queued behind it
// finds it done. The host runs ahead of the device; settle() is where it waits, with the job's deadline.
//
// Why this cannot lock up. NCCL knows no tags: messages of a pair of ranks match in the order of groups, and a group
// ends, on the device, when all its messages have found their other side. The canonical reducer works bucket by bucket
// in the one order of all ranks, and the plan of a bucket in phases; it posts a phase's messages and then tests the
// first. Since that test is true, it goes on to the additions and the next phase, so that a bucket's groups stand in
// the queue one after the other, all before the next bucket's: several buckets "under way" never interleave, whatever
// the timing. So group (bucket, phase) of a rank waits for groups of the same bucket or of earlier ones only. Within a
// bucket the plan is free of cycles when each phase waits for all its messages, which is how it runs on any transport
// with one bucket at a time. By induction over the buckets every group ends. What matters, then, is that a test() is
// never false: where NCCL is still connecting to a peer, it waits here.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace lockstep {

/// Collective over `host`, which serves for the meeting, for collectives on host memory, for deadlines and for news of
/// others. send, receive and all_reduce_native take memory of this rank's device, which is no other rank's, in the
/// order of `stream` (of the CUDA backend); tags play no part. Where a peer is silent or the library reports an error,
/// what is on the stream is aborted and the error names the ranks. Both must outlive it.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, Stream& stream);

}  // namespace lockstep

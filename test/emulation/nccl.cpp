// An emulated NCCL: the functions of <nccl.h> that Lockstep calls, over shared memory, between threads and processes.
// It refuses what the library refuses (two ranks on one device, a call while the one before is in progress), reports
// what would hang or corrupt memory on a GPU (messages of other sizes, other collectives, a peer that never comes), and
// adds in an order that depends on the element, so that nobody can rely on one.
#include "test/emulation/nccl.hpp"

#include <fmt/format.h>
#include <nccl.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/emulation/memory.hpp"
#include "test/emulation/nccl_comm.hpp"
#include "test/emulation/nccl_segment.hpp"
#include "test/emulation/runtime.hpp"

namespace em = lockstep::emulation;
using em::NcclCall;
using em::NcclHeader;
using em::NcclMessage;
using em::NcclState;

namespace {

double read_timeout() {
    const char* text = std::getenv("LOCKSTEP_EMULATION_NCCL_TIMEOUT");
    return text == nullptr ? 60 : std::atof(text);
}
std::atomic<double> timeout_of_process{read_timeout()};

// Calls between ncclGroupStart and ncclGroupEnd of this thread.
thread_local int group_depth = 0;
thread_local std::vector<NcclCall> group_calls;
thread_local ncclComm_t group_comm = nullptr;
thread_local ncclResult_t group_fault = ncclSuccess;

/// The body of a function that touches the device.
ncclResult_t guarded(const char* name, const std::function<ncclResult_t()>& body) {
    ncclResult_t result = ncclSuccess;
    const cudaError_t status = em::call(name, [&] {
        result = body();
        return cudaSuccess;
    });
    return status == cudaSuccess ? result : ncclUnhandledCudaError;
}

ncclResult_t require_ready(ncclComm_t comm, const char* name) {
    if (comm == nullptr) return em::refuse_nccl(ncclInvalidArgument, fmt::format("{}: the communicator is null", name));
    if (comm->state->failure() != ncclSuccess) return comm->state->failure();
    if (comm->phase == ncclComm::Phase::kReady) return ncclSuccess;
    return em::refuse_nccl(ncclInvalidArgument, fmt::format("{}: attempt to use a communicator before the previous "
                                                            "operation returned ncclSuccess, or after it was finalized",
                                                            name));
}

bool overlap(const NcclMessage& a, const NcclMessage& b) {
    const auto* first = static_cast<const std::byte*>(a.memory);
    const auto* second = static_cast<const std::byte*>(b.memory);
    return first < second + b.bytes && second < first + a.bytes;
}

ncclResult_t check_group(const std::vector<NcclCall>& calls) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (calls[i].stream != calls.front().stream) {
            return em::refuse_nccl(ncclInvalidUsage, "one stream in a group, please");
        }
        if (calls[i].reduces && calls.size() > 1) {
            return em::refuse_nccl(ncclInvalidUsage, "a collective stands alone, please");
        }
        for (std::size_t j = 0; j < i; ++j) {
            const NcclMessage& one = calls[i].message;
            const NcclMessage& other = calls[j].message;
            if (!(one.sends && other.sends) && overlap(one, other)) {
                return em::refuse_nccl(ncclInvalidUsage,
                                       "a message is received into memory that the same group uses otherwise");
            }
        }
    }
    return ncclSuccess;
}

ncclResult_t end_group() {
    std::vector<NcclCall> calls;
    calls.swap(group_calls);
    ncclComm_t comm = std::exchange(group_comm, nullptr);
    const ncclResult_t fault = std::exchange(group_fault, ncclSuccess);
    if (fault != ncclSuccess) return fault;
    if (calls.empty()) return ncclSuccess;
    const ncclResult_t checked = check_group(calls);
    if (checked != ncclSuccess) return checked;
    comm->launching = std::move(calls);
    return comm->begin(ncclComm::Phase::kLaunching);
}

/// One call: of the open group, or a group by itself.
ncclResult_t add_call(const char* name, ncclComm_t comm, const NcclCall& call) {
    ncclResult_t result = require_ready(comm, name);
    const NcclState* state = result == ncclSuccess ? comm->state.get() : nullptr;
    if (state != nullptr && !call.reduces &&
        (call.message.peer < 0 || call.message.peer >= state->size || call.message.peer == state->rank)) {
        result = em::refuse_nccl(ncclInvalidArgument, fmt::format("{}: peer {} in a communicator of {}", name,
                                                                  call.message.peer, state->size));
    }
    if (state != nullptr && group_comm != nullptr && group_comm != comm) {
        result = em::refuse_nccl(ncclInvalidUsage, "one communicator in a group, please");
    }
    if (state != nullptr && call.stream == nullptr) {
        result = em::refuse_nccl(ncclInvalidArgument, fmt::format("{} on the default stream", name));
    }
    if (result != ncclSuccess) {
        if (group_depth > 0) group_fault = result;
        return result;
    }
    group_comm = comm;
    group_calls.push_back(call);
    if (group_depth == 0) return end_group();
    return comm->blocking ? ncclSuccess : ncclInProgress;  // as any call of a communicator that does not block may say
}

ncclResult_t point_to_point(bool sends, const void* memory, std::size_t count, ncclDataType_t type, int peer,
                            ncclComm_t comm, cudaStream_t stream) {
    const char* name = sends ? "ncclSend" : "ncclRecv";
    return guarded(name, [&] {
        if (em::bytes_of(type) == 0)
            return em::refuse_nccl(ncclInvalidArgument, fmt::format("{}: type not emulated", name));
        NcclCall call;
        call.message = {sends, peer, const_cast<void*>(memory), count * em::bytes_of(type),
                        NcclHeader{NcclHeader::Kind::kSend, type, count, 0}};
        call.stream = stream;
        return add_call(name, comm, call);
    });
}

}  // namespace

namespace lockstep::emulation {

void set_nccl_timeout(double seconds) {
    timeout_of_process = seconds;
}

}  // namespace lockstep::emulation

// ------------------------------------------------------------------------------------------------ C interface

ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    *id = em::make_unique_id();
    return id->internal[0] != 0 ? ncclSuccess : em::refuse_nccl(ncclSystemError, "no shared memory for a unique id");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
    return guarded("ncclCommInitRankConfig", [&] {
        if (config == nullptr || config->magic != 0xcafebeef) {
            return em::refuse_nccl(ncclInvalidArgument, "the config was not made by NCCL_CONFIG_INITIALIZER");
        }
        if (ranks < 1 || ranks > em::kNcclRanks || rank < 0 || rank >= ranks) {
            return em::refuse_nccl(ncclInvalidArgument,
                                   fmt::format("rank {} of {} (emulated: up to {})", rank, ranks, em::kNcclRanks));
        }
        if (em::libraries_lack_memory()) {
            return em::refuse_nccl(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
        }
        auto state = std::make_shared<NcclState>();
        state->segment = em::open_segment(id);
        if (!state->segment) return em::refuse_nccl(ncclSystemError, "nobody is at the place that the unique id names");
        state->size = ranks;
        state->rank = rank;
        state->timeout_s = timeout_of_process;
        auto& own = state->segment->ranks[static_cast<std::size_t>(rank)];
        own.size = ranks;
        std::snprintf(own.device.data(), own.device.size(), "%s", em::pci_bus_id(em::current_device()).c_str());
        if (own.here.exchange(1) != 0) {
            return em::refuse_nccl(ncclInvalidUsage, fmt::format("rank {} joins twice", rank));
        }
        auto made = std::make_unique<ncclComm>();
        made->state = std::move(state);
        made->id = id;
        made->blocking = config->blocking != 0;
        *comm = made.release();
        return (*comm)->begin(ncclComm::Phase::kJoining);
    });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
    if (comm == nullptr || result == nullptr) return ncclInvalidArgument;
    if (comm->state->failure() != ncclSuccess) {
        *result = comm->state->failure();
        return ncclSuccess;
    }
    return guarded("ncclCommGetAsyncError", [&] {
        *result = comm->advance();
        return ncclSuccess;
    });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    const ncclResult_t ready = require_ready(comm, "ncclCommFinalize");
    return ready == ncclSuccess ? comm->begin(ncclComm::Phase::kFinalizing) : ready;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (comm == nullptr) return ncclSuccess;
    if (comm->phase != ncclComm::Phase::kFinal) {
        return em::refuse_nccl(ncclInvalidUsage, "ncclCommDestroy before ncclCommFinalize has ended");
    }
    const std::unique_ptr<ncclComm> owned(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (comm == nullptr) return ncclSuccess;
    const std::unique_ptr<ncclComm> owned(comm);
    owned->state->aborted = true;
    return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
    switch (code) {
        case ncclSuccess:
            return "no error";
        case ncclUnhandledCudaError:
            return "unhandled cuda error";
        case ncclSystemError:
            return "unhandled system error";
        case ncclInternalError:
            return "internal error";
        case ncclInvalidArgument:
            return "invalid argument";
        case ncclInvalidUsage:
            return "invalid usage";
        case ncclRemoteError:
            return "remote process exited or there was a network error";
        case ncclInProgress:
            return "NCCL operation in progress";
        default:
            return "unknown result code";
    }
}

const char* ncclGetLastError(ncclComm_t comm) {
    if (comm == nullptr || comm->state->failure() == ncclSuccess) return em::last_nccl_refusal();
    comm->last_error = comm->state->reason();
    return comm->last_error.c_str();
}

ncclResult_t ncclGroupStart() {
    ++group_depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
    if (group_depth == 0) return em::refuse_nccl(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--group_depth > 0) return ncclSuccess;
    return guarded("ncclGroupEnd", [] { return end_group(); });
}

ncclResult_t ncclSend(const void* memory, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return point_to_point(true, memory, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void* memory, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    return point_to_point(false, memory, count, type, peer, comm, stream);
}

ncclResult_t ncclAllReduce(const void* memory, void* result, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    return guarded("ncclAllReduce", [&] {
        if (type != ncclFloat32 || op != ncclSum)
            return em::refuse_nccl(ncclInvalidArgument, "fp32 sums alone are emulated");
        NcclCall call;
        call.reduces = true;
        call.message = {false, -1, const_cast<void*>(memory), count * sizeof(float),
                        NcclHeader{NcclHeader::Kind::kAllReduce, type, count, comm ? comm->reduced++ : 0}};
        call.result = result;
        call.stream = stream;
        return add_call("ncclAllReduce", comm, call);
    });
}

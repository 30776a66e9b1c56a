#include "test/emulation/nccl_comm.hpp"

#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "test/emulation/runtime.hpp"

using namespace lockstep::emulation;

namespace {

// How often a call of a communicator that must not block says that it is in progress before it does anything.
constexpr int kInProgress = 3;

thread_local std::string last_refusal;

void add_rotated(const std::vector<std::vector<float>>& all, float* result, std::size_t count) {
    const std::size_t ranks = all.size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = i * 2654435761U % ranks;
        float sum = all[first][i];
        for (std::size_t k = 1; k < ranks; ++k) sum += all[(first + k) % ranks][i];
        result[i] = sum;
    }
}

/// Everybody sends everything to everybody, then adds.
void push_reduce(const std::shared_ptr<NcclState>& state, const NcclCall& call) {
    const NcclMessage& given = call.message;
    access(call.stream, given.memory, given.bytes, false, "ncclAllReduce");
    access(call.stream, call.result, given.bytes, true, "ncclAllReduce");
    struct Work {
        std::vector<std::vector<float>> all;
        std::unique_ptr<NcclExchange> exchange;
    };
    auto work = std::make_shared<Work>();
    push_poll(call.stream, "ncclAllReduce", [state, given, result = call.result, work] {
        const std::size_t count = given.bytes / sizeof(float);
        if (!work->exchange) {
            auto* own = static_cast<float*>(translate(given.memory, given.bytes));
            std::vector<NcclMessage> messages;
            work->all.resize(static_cast<std::size_t>(state->size));
            for (int peer = 0; peer < state->size; ++peer) {
                std::vector<float>& part = work->all[static_cast<std::size_t>(peer)];
                part.assign(own, own + count);
                if (peer == state->rank) continue;
                messages.push_back({true, peer, own, given.bytes, given.header});
                messages.push_back({false, peer, part.data(), given.bytes, given.header});
            }
            work->exchange = std::make_unique<NcclExchange>(state, std::move(messages));
        }
        if (!work->exchange->poll()) return false;
        if (!state->aborted) {
            add_rotated(work->all, static_cast<float*>(translate(result, given.bytes)), count);
        }
        --state->queued;
        return true;
    });
}

void push_messages(const std::shared_ptr<NcclState>& state, const std::vector<NcclCall>& calls) {
    std::vector<NcclMessage> messages;
    for (const NcclCall& call : calls) {
        const NcclMessage& message = call.message;
        access(call.stream, message.memory, message.bytes, !message.sends, message.sends ? "ncclSend" : "ncclRecv");
        messages.push_back(message);
    }
    auto exchange = std::make_shared<std::unique_ptr<NcclExchange>>();
    push_poll(calls.front().stream, "ncclGroup", [state, messages, exchange] {
        if (!*exchange) {
            std::vector<NcclMessage> real = messages;
            for (NcclMessage& message : real) {
                if (message.bytes > 0) message.memory = translate(message.memory, message.bytes);
            }
            *exchange = std::make_unique<NcclExchange>(state, std::move(real));
        }
        if (!(*exchange)->poll()) return false;
        --state->queued;
        return true;
    });
}

}  // namespace

namespace lockstep::emulation {

ncclResult_t refuse_nccl(ncclResult_t code, const std::string& message) {
    last_refusal = message;
    refuse(cudaErrorInvalidValue, "NCCL: " + message);
    return code;
}

const char* last_nccl_refusal() {
    return last_refusal.c_str();
}

}  // namespace lockstep::emulation

void ncclComm::push() {
    std::vector<NcclCall> calls;
    calls.swap(launching);
    ++state->queued;
    if (calls.front().reduces) {
        push_reduce(state, calls.front());
    } else {
        push_messages(state, calls);
    }
}

/// All ranks are here: whether they may work together.
ncclResult_t ncclComm::check_ranks() {
    const NcclSegment& segment = *state->segment;
    for (int rank = 0; rank < state->size; ++rank) {
        const auto& one = segment.ranks[static_cast<std::size_t>(rank)];
        if (one.size != state->size) {
            return refuse_nccl(ncclInvalidUsage, fmt::format("rank {} joins a communicator of {} ranks, not of {}",
                                                             rank, one.size, state->size));
        }
        for (int before = 0; before < rank; ++before) {
            const auto& other = segment.ranks[static_cast<std::size_t>(before)];
            if (std::strcmp(one.device.data(), other.device.data()) == 0) {
                return refuse_nccl(ncclInvalidUsage,
                                   fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {}",
                                               before, rank, one.device.data()));
            }
        }
    }
    close_unique_id(id);
    return ncclSuccess;
}

ncclResult_t ncclComm::join() {
    const NcclState& shared = *state;
    if (shared.segment->joined(shared.size) == shared.size) {
        phase = Phase::kReady;
        return check_ranks();
    }
    if (std::chrono::steady_clock::now() - since < std::chrono::duration<double>(shared.timeout_s)) {
        return ncclInProgress;
    }
    std::string missing;
    for (int rank = 0; rank < shared.size; ++rank) {
        if (shared.segment->ranks[static_cast<std::size_t>(rank)].here == 0) missing += fmt::format(" {}", rank);
    }
    return refuse_nccl(ncclSystemError, fmt::format("rank {} waits for these ranks to join:{}", shared.rank, missing));
}

ncclResult_t ncclComm::advance() {
    if (state->failure() != ncclSuccess) return state->failure();
    if (polls > 0 && polls-- > 0) return ncclInProgress;
    switch (phase) {
        case Phase::kJoining: {
            const ncclResult_t result = join();
            if (result != ncclSuccess && result != ncclInProgress) state->fail_with(result, last_refusal);
            return result;
        }
        case Phase::kLaunching:
            phase = Phase::kReady;
            push();
            return ncclSuccess;
        case Phase::kFinalizing:
            if (state->queued > 0) return ncclInProgress;
            phase = Phase::kFinal;
            return ncclSuccess;
        case Phase::kReady:
        case Phase::kFinal:
            return ncclSuccess;
    }
    return ncclInternalError;
}

ncclResult_t ncclComm::begin(Phase next) {
    phase = next;
    if (!blocking) {
        polls = kInProgress;
        return ncclInProgress;
    }
    ncclResult_t result = advance();
    while (result == ncclInProgress) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        result = advance();
    }
    return result;
}

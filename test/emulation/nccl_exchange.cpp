#include "test/emulation/nccl_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "test/emulation/runtime.hpp"

namespace lockstep::emulation {

void NcclState::fail_with(ncclResult_t code, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_ != ncclSuccess) return;
    failure_ = code;
    reason_ = why;
}

ncclResult_t NcclState::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

std::string NcclState::reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
}

NcclExchange::NcclExchange(std::shared_ptr<NcclState> state, std::vector<NcclMessage> messages)
    : state_(std::move(state)), messages_(std::move(messages)), progress_(messages_.size()), left_(messages_.size()) {}

bool NcclExchange::poll() {
    if (state_->aborted) return true;  // the data stays as it is: whoever aborts must not use it
    if (state_->segment->is_broken()) {
        const std::string why = fmt::format("rank {} stops: {}", state_->rank, state_->segment->reason.data());
        state_->fail_with(ncclRemoteError, why);
        fail(why);
    }
    if (!started_) since_ = Clock::now();
    started_ = true;
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t i = 0; i < messages_.size(); ++i) moved |= !progress_[i].done && move(i);
        if (moved) since_ = Clock::now();
    }
    if (left_ > 0 && std::chrono::duration<double>(Clock::now() - since_).count() > state_->timeout_s) give_up();
    return left_ == 0;
}

bool NcclExchange::move(std::size_t index) {
    if (waits_for_earlier(index)) return false;
    const NcclMessage& message = messages_[index];
    Progress& progress = progress_[index];
    const bool moved = message.sends ? send_some(message, progress) : receive_some(message, progress);
    if (progress.done) --left_;
    return moved;
}

// Messages of one pair of ranks in one direction arrive in the order in which they were given.
bool NcclExchange::waits_for_earlier(std::size_t index) const {
    const NcclMessage& message = messages_[index];
    for (std::size_t i = 0; i < index; ++i) {
        if (!progress_[i].done && messages_[i].sends == message.sends && messages_[i].peer == message.peer) return true;
    }
    return false;
}

bool NcclExchange::send_some(const NcclMessage& message, Progress& progress) {
    NcclSlot& slot = state_->segment->slot(state_->rank, message.peer);
    if (slot.full.load(std::memory_order_acquire) != 0) return false;
    if (progress.begun && progress.moved == message.bytes) {  // the last chunk was taken
        progress.done = true;
        return true;
    }
    slot.header = message.header;
    slot.chunk = std::min(kNcclChunk, message.bytes - progress.moved);
    if (slot.chunk > 0) {
        std::memcpy(slot.data.data(), static_cast<const std::byte*>(message.memory) + progress.moved, slot.chunk);
    }
    progress.moved += slot.chunk;
    progress.begun = true;
    slot.full.store(1, std::memory_order_release);
    return true;
}

bool NcclExchange::receive_some(const NcclMessage& message, Progress& progress) {
    NcclSlot& slot = state_->segment->slot(message.peer, state_->rank);
    if (slot.full.load(std::memory_order_acquire) == 0) return false;
    if (!progress.begun && slot.header != message.header) {
        const std::string why = fmt::format("rank {} expects {} from rank {}, which sends {}", state_->rank,
                                            message.header.text(), message.peer, slot.header.text());
        state_->segment->break_with(why);
        state_->fail_with(ncclInvalidUsage, why);
        fail("NCCL: " + why);
    }
    progress.begun = true;
    if (slot.chunk > 0) {
        std::memcpy(static_cast<std::byte*>(message.memory) + progress.moved, slot.data.data(), slot.chunk);
    }
    progress.moved += slot.chunk;
    progress.done = progress.moved == message.bytes;
    slot.full.store(0, std::memory_order_release);
    return true;
}

void NcclExchange::give_up() const {
    std::string waits;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        if (progress_[i].done) continue;
        waits +=
            fmt::format("{}{} rank {} {}", waits.empty() ? "" : ", ", messages_[i].sends ? "send to" : "receive from",
                        messages_[i].peer, messages_[i].header.text());
    }
    const std::string why =
        fmt::format("rank {} waits to {}; nothing has moved for {} s", state_->rank, waits, state_->timeout_s);
    state_->fail_with(ncclSystemError, why);
    fail("NCCL: " + why);
}

}  // namespace lockstep::emulation

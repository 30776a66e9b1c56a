#include "cuda/comm/staged_communicator.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "cuda/comm/device_communicator.hpp"
#include "cuda/comm/pinned_blocks.hpp"

namespace lockstep {
namespace {

class StagedCommunicator final : public DeviceCommunicator {
  public:
    StagedCommunicator(Communicator& host, Stream& stream)
        : DeviceCommunicator(host), stream_(cuda_stream(stream)), requests_(kSlots) {
        for (Staged& request : requests_) request.owner = this;
        copying_.reserve(kSlots);
    }

    Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) override {
        Staged& request = claim(slot, to, tag, bytes.size());
        request.block->download(bytes.data(), bytes.size(), stream_);
        request.state = State::kCopying;
        copying_.push_back(&request);
        return request;
    }

    Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) override {
        Staged& request = claim(slot, from, tag, bytes.size());
        request.into = bytes.data();
        request.inner = &host().receive(slot, from, tag, {request.block->data(), bytes.size()});
        request.state = State::kArriving;
        return request;
    }

    void all_reduce_native(std::span<float> values) override {
        if (size() == 1) return;
        PinnedBlock& block = blocks_.take(values.size_bytes());
        block.download(values.data(), values.size_bytes(), stream_);
        host().begin_work();
        while (!block.copied()) {
            host().still_working();
            std::this_thread::sleep_for(kNap);
        }
        host().all_reduce_native({reinterpret_cast<float*>(block.data()), values.size()});
        block.upload(values.data(), values.size_bytes(), stream_);
        blocks_.give(block);
    }

  private:
    static constexpr std::chrono::microseconds kNap{20};

    enum class State { kIdle, kCopying, kLeaving, kArriving };
    struct Staged final : Request {
        bool test() override { return owner->test(*this); }
        StagedCommunicator* owner = nullptr;
        State state = State::kIdle;
        int slot = 0;
        int peer = 0;
        int tag = 0;
        std::size_t bytes = 0;
        std::byte* into = nullptr;  // on the device
        PinnedBlock* block = nullptr;
        Request* inner = nullptr;
    };

    Staged& claim(int slot, int peer, int tag, std::size_t bytes) {
        Staged& request = requests_.at(static_cast<std::size_t>(slot));
        if (request.state != State::kIdle) fail(ErrorKind::kRuntime, "request slot {} is still in use", slot);
        request.slot = slot;
        request.peer = peer;
        request.tag = tag;
        request.bytes = bytes;
        request.block = &blocks_.take(bytes);
        return request;
    }

    // Hands on what the device has written by now: in the order in which it was given, which is the order of messages
    // of one tag, and whichever request is asked about, since a caller may first wait for the answer to another one.
    void send_copied() {
        std::size_t gone = 0;
        for (; gone < copying_.size() && copying_[gone]->block->copied(); ++gone) {
            Staged& request = *copying_[gone];
            request.inner =
                &host().send(request.slot, request.peer, request.tag, {request.block->data(), request.bytes});
            request.state = State::kLeaving;
        }
        copying_.erase(copying_.begin(), copying_.begin() + static_cast<std::ptrdiff_t>(gone));
    }

    bool test(Staged& request) {
        send_copied();
        if (request.state == State::kIdle) return true;
        if (request.state == State::kCopying || !request.inner->test()) return false;
        if (request.state == State::kArriving) request.block->upload(request.into, request.bytes, stream_);
        blocks_.give(*request.block);
        request.state = State::kIdle;
        return true;
    }

    cudaStream_t stream_;
    PinnedBlocks blocks_;
    std::vector<Staged> requests_;
    std::vector<Staged*> copying_;  // sends whose copies are queued, in order
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(Communicator& host, Stream& stream) {
    return std::make_unique<StagedCommunicator>(host, stream);
}

}  // namespace lockstep

// Carries memory of a SeparateMemoryBackend between ranks over another communicator: it waits for what the device has
// queued there before memory leaves or is overwritten.
#pragma once

#include <atomic>
#include <cstdlib>

#include "backend/separate_memory_backend.hpp"
#include "comm/communicator.hpp"

namespace lockstep::test {

class SeparateMemoryCommunicator final : public Communicator {
  public:
    /// `settled`, if there is one, counts the calls of settle().
    SeparateMemoryCommunicator(Communicator& host, SeparateMemoryBackend& device, std::atomic<int>* settled = nullptr)
        : host_(host), device_(device), settled_(settled) {}

    int rank() const override { return host_.rank(); }
    int size() const override { return host_.size(); }
    int local_rank() const override { return host_.local_rank(); }
    int local_size() const override { return host_.local_size(); }
    Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) override {
        return host_.send(slot, to, tag, {ready(bytes.data()), bytes.size()});
    }
    Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) override {
        return host_.receive(slot, from, tag, {ready(bytes.data()), bytes.size()});
    }
    void barrier() override { host_.barrier(); }
    void broadcast(int root, std::vector<std::byte>& bytes) override { host_.broadcast(root, bytes); }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) override {
        return host_.all_gather(bytes);
    }
    void all_reduce_native(std::span<float> values) override {
        host_.all_reduce_native({ready(values.data()), values.size()});
    }
    void settle() override {
        if (settled_ != nullptr) ++*settled_;
    }
    [[noreturn]] void abort(int code) override {
        host_.abort(code);
        std::abort();  // not reached
    }
    Communicator& job() override { return host_.job(); }
    int job_rank(int rank) const override { return host_.job_rank(rank); }

  private:
    template <class T>
    T* ready(T* device) {
        device_.wait(device_.communication());
        return device_.memory().real(device);
    }

    Communicator& host_;
    SeparateMemoryBackend& device_;
    std::atomic<int>* settled_;
};

}  // namespace lockstep::test

// What the communicators of device memory have in common: all that is no message of device memory is the host's.
#pragma once

#include <cstdlib>

#include "comm/communicator.hpp"

namespace lockstep {

class DeviceCommunicator : public Communicator {
  public:
    explicit DeviceCommunicator(Communicator& host) : host_(host) { set_timeout(host.timeout()); }

    int rank() const override { return host_.rank(); }
    int size() const override { return host_.size(); }
    int local_rank() const override { return host_.local_rank(); }
    int local_size() const override { return host_.local_size(); }

    void barrier() override { host_.barrier(); }
    void broadcast(int root, std::vector<std::byte>& bytes) override { host_.broadcast(root, bytes); }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) override {
        return host_.all_gather(bytes);
    }
    using Communicator::all_gather;
    using Communicator::broadcast;

    [[noreturn]] void abort(int code) override {
        host_.abort(code);
        std::abort();  // not reached
    }

    // Deadlines and news are the job's, in its ranks.
    Communicator& job() override { return host_.job(); }
    int job_rank(int rank) const override { return host_.job_rank(rank); }

  protected:
    Communicator& host() { return host_; }

  private:
    Communicator& host_;
};

}  // namespace lockstep

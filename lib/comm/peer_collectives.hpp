// The collectives of a communicator that only has messages between two ranks: written once, so that each has deadlines
// and can name the peer that is missing, on every transport.
#pragma once

#include "comm/communicator.hpp"

namespace lockstep {

class PeerCommunicator : public Communicator {
  public:
    void barrier() override;
    void broadcast(int root, std::vector<std::byte>& bytes) override;
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) override;
    void all_reduce_native(std::span<float> values) override;

    using Communicator::all_gather;
    using Communicator::broadcast;

  private:
    void send_to(int to, std::span<const std::byte> bytes, int tag);
    void receive_from(int from, std::span<std::byte> bytes, int tag);
};

}  // namespace lockstep

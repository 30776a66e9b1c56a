// One rank: nothing is ever sent, so that the code above needs no special case.
#include <cstdlib>

#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

class SingleCommunicator final : public Communicator {
  public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    int local_rank() const override { return 0; }
    int local_size() const override { return 1; }

    Request& send(int /*slot*/, int to, int /*tag*/, std::span<const std::byte> /*bytes*/) override { no_peer(to); }
    Request& receive(int /*slot*/, int from, int /*tag*/, std::span<std::byte> /*bytes*/) override { no_peer(from); }

    void barrier() override {}
    void broadcast(int /*root*/, std::vector<std::byte>& /*bytes*/) override {}
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) override {
        return {{bytes.begin(), bytes.end()}};
    }
    void all_reduce_native(std::span<float> /*values*/) override {}
    [[noreturn]] void abort(int code) override { std::_Exit(code); }

  private:
    [[noreturn]] static void no_peer(int peer) {
        fail(ErrorKind::kRuntime, "a message between rank 0 and rank {} in a world of one rank", peer);
    }
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
    return std::make_unique<SingleCommunicator>();
}

}  // namespace lockstep

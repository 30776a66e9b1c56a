// A sum that arrives wrong at one rank only is seen by all, rank 0 included, which alone prints.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "comm/thread_communicator.hpp"
#include "train/doctor_network.hpp"

using namespace lockstep;

namespace {

/// Passes everything on; messages that begin with the `spoiled` number arrive with another one.
class SpoiledWire final : public Communicator {
  public:
    SpoiledWire(Communicator& wire, float spoiled) : wire_(wire), spoiled_(spoiled), arriving_(kSlots) {}

    int rank() const override { return wire_.rank(); }
    int size() const override { return wire_.size(); }
    int local_rank() const override { return wire_.local_rank(); }
    int local_size() const override { return wire_.local_size(); }
    Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) override {
        return wire_.send(slot, to, tag, bytes);
    }
    Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) override {
        Arriving& request = arriving_[static_cast<size_t>(slot)];
        request = Arriving(wire_.receive(slot, from, tag, bytes), bytes, spoiled_);
        return request;
    }
    void barrier() override { wire_.barrier(); }
    void broadcast(int root, std::vector<std::byte>& bytes) override { wire_.broadcast(root, bytes); }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) override {
        return wire_.all_gather(bytes);
    }
    void all_reduce_native(std::span<float> values) override { wire_.all_reduce_native(values); }
    [[noreturn]] void abort(int code) override {
        wire_.abort(code);
        std::abort();  // not reached
    }

  private:
    class Arriving final : public Request {
      public:
        Arriving() = default;
        Arriving(Request& request, std::span<std::byte> bytes, float spoiled)
            : request_(&request), bytes_(bytes), spoiled_(spoiled) {}
        bool test() override {
            if (!request_->test()) return false;
            float first = 0;
            if (bytes_.size() >= sizeof(first)) std::memcpy(&first, bytes_.data(), sizeof(first));
            if (first == spoiled_) {
                first += 1;
                std::memcpy(bytes_.data(), &first, sizeof(first));
            }
            bytes_ = {};
            return true;
        }

      private:
        Request* request_ = nullptr;
        std::span<std::byte> bytes_;
        float spoiled_ = 0;
    };

    Communicator& wire_;
    float spoiled_;
    std::vector<Arriving> arriving_;
};

/// Whether each of two ranks says that the sums were right, where sums of `spoiled` reach rank 1 wrong.
std::vector<bool> right_where(float spoiled) {
    std::vector<char> right(2);
    run_thread_world(2, [&](Communicator& comm) {
        SpoiledWire wire(comm, spoiled);
        Communicator& used = comm.rank() == 1 ? static_cast<Communicator&>(wire) : comm;
        right[static_cast<size_t>(comm.rank())] = measure_network(used, {"a", "a"}).sums_right;
    });
    return {right.begin(), right.end()};
}

}  // namespace

TEST_CASE("a sum that is wrong on one rank is wrong for all") {
    CHECK(right_where(2) == std::vector<bool>{false, false});  // the sum of two ones
    CHECK(right_where(5) == std::vector<bool>{true, true});    // no such sum
}

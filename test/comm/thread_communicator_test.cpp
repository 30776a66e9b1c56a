// Ranks as threads: collectives, messages, and what happens to the others when one fails.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>

#include "comm/collective_cases.hpp"
#include "comm/thread_communicator.hpp"
#include "core/error.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string message_of(int world, FunctionRef<void(Communicator&)> body) {
    try {
        run_thread_world(world, body);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("collectives and messages work at every world size") {
    for (const int world : {1, 2, 3, 4, 5, 7, 8}) {
        std::vector<std::string> faults(static_cast<size_t>(world));
        run_thread_world(world, [&](Communicator& comm) {
            std::string& fault = faults[static_cast<size_t>(comm.rank())];
            fault = fault_in_collectives(comm);
            if (fault.empty()) fault = fault_in_messages(comm);
        });
        INFO("W " << world);
        CHECK(faults == std::vector<std::string>(static_cast<size_t>(world)));
    }
}

TEST_CASE("nobody leaves a barrier before everybody has come") {
    std::atomic<int> arrived = 0;
    std::atomic<int> wrong = 0;
    run_thread_world(7, [&](Communicator& comm) {
        for (int round = 1; round <= 50; ++round) {
            ++arrived;
            comm.barrier();
            if (arrived < 7 * round) ++wrong;
            comm.barrier();
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("when a rank throws, the others stop at once and its error is the one seen") {
    const auto start = std::chrono::steady_clock::now();
    const std::string message = message_of(8, [](Communicator& comm) {
        if (comm.rank() == 5) fail(ErrorKind::kData, "rank 5 cannot read its file");
        comm.barrier();
    });
    CHECK(message == "rank 5 cannot read its file");
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));  // the deadline is 120 s
}

TEST_CASE("of several failed ranks the lowest one's error is seen") {
    CHECK(message_of(4, [](Communicator& comm) { fail(ErrorKind::kRuntime, "rank {} fails", comm.rank()); }) ==
          "rank 0 fails");
}

TEST_CASE("abort ends the world and says with which code") {
    CHECK(message_of(3, [](Communicator& comm) {
              if (comm.rank() == 2) comm.abort(5);
              comm.barrier();
          }) == "rank 2 ended the world with exit code 5");
}

TEST_CASE("a message of another length than expected is refused") {
    CHECK(message_of(2, [](Communicator& comm) {
              std::vector<std::byte> bytes(comm.rank() == 0 ? 8 : 4);
              if (comm.rank() == 0) comm.send_recv(1, bytes, Communicator::kNobody, {});
              if (comm.rank() == 1) comm.send_recv(Communicator::kNobody, {}, 0, bytes);
          }) == "rank 0 sent 8 bytes where rank 1 expects 4 (tag 0)");
}

TEST_CASE("a request slot cannot be taken twice, nor a rank outside the world") {
    CHECK(message_of(2, [](Communicator& comm) {
              if (comm.rank() == 1) return;
              std::byte b{};
              comm.receive(0, 1, 0, {&b, 1});
              comm.receive(0, 1, 0, {&b, 1});
          }) == "request slot 0 is still in use");
    CHECK(message_of(2, [](Communicator& comm) {
              if (comm.rank() == 0) comm.send(0, 2, 0, {});
          }) == "a message sent to rank 2 by rank 0 in a world of 2");
}

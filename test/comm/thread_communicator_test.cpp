// Ranks as threads: collectives, deadlines, and what happens to the others when one fails.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>

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

TEST_CASE("a rank that does not answer is named, also by those who wait for it through others") {
    std::vector<std::string> messages(4);
    std::mutex mutex;
    std::condition_variable changed;
    int given_up = 0;
    run_thread_world(4, [&](Communicator& comm) {
        comm.set_timeout(1);
        if (comm.rank() == 3) {  // alive, but silent until the others have given up
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return given_up == 3; });
            return;
        }
        std::string& message = messages[static_cast<size_t>(comm.rank())];
        try {
            comm.all_gather("a ring: rank 0 waits for 3, 1 for 0, 2 for 1");
        } catch (const Error& error) {
            message = error.kind() == ErrorKind::kRuntime ? error.what() : "another kind";
        }
        const std::lock_guard lock(mutex);
        ++given_up;
        changed.notify_all();
    });
    CHECK(messages[0] == "rank 3 did not answer for 1 s (device.timeout_s)");
    CHECK(messages[1] == "rank 3 did not answer for 1 s (device.timeout_s): rank 1 waits for it through rank 0");
    CHECK(messages[2] == "rank 3 did not answer for 1 s (device.timeout_s): rank 2 waits for it through rank 1, 0");
}

TEST_CASE("ranks that wait for each other are told so") {
    const std::string message = message_of(2, [](Communicator& comm) {
        comm.set_timeout(0.5);
        std::byte never{};
        comm.send_recv(Communicator::kNobody, {}, 1 - comm.rank(), {&never, 1});
    });
    CHECK_THAT(message, Catch::EndsWith(" did not answer for 0.5 s (device.timeout_s): ranks wait for each other"));
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

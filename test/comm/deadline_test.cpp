// Deadlines: who is named when an answer does not come, and who is not: a rank at work, or one that waits in turn.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "comm/patience.hpp"
#include "comm/thread_communicator.hpp"
#include "core/error.hpp"

using namespace lockstep;

namespace {

using Clock = std::chrono::steady_clock;

std::string message_of(int world, FunctionRef<void(Communicator&)> body) {
    try {
        run_thread_world(world, body);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

void work_for(double seconds, FunctionRef<void()> between_pieces) {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (Clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        between_pieces();
    }
}

/// What the ranks but `silent` ones say of a ring of messages in which some do not take part.
std::vector<std::string> told_in_a_ring(int world, std::vector<int> silent) {
    std::vector<std::string> messages(static_cast<size_t>(world));
    std::mutex mutex;
    std::condition_variable changed;
    int given_up = 0;
    run_thread_world(world, [&](Communicator& comm) {
        comm.set_timeout(1);
        if (std::find(silent.begin(), silent.end(), comm.rank()) != silent.end()) {
            std::unique_lock lock(mutex);  // alive, but silent until the others have given up
            changed.wait(lock, [&] { return given_up == world - static_cast<int>(silent.size()); });
            return;
        }
        std::string& message = messages[static_cast<size_t>(comm.rank())];
        try {
            comm.all_gather("a ring: rank 0 waits for 3, 1 for 0, 2 for 1");
        } catch (const PeerFailed&) {
            message = "stops";
        } catch (const Error& error) {
            message = error.kind() == ErrorKind::kRuntime ? error.what() : "another kind";
        }
        const std::lock_guard lock(mutex);
        ++given_up;
        changed.notify_all();
    });
    return messages;
}

}  // namespace

TEST_CASE("a rank that does not answer is named, also by those who wait for it through others") {
    const std::vector<std::string> messages = told_in_a_ring(4, {3});
    const std::string named = "rank 3 did not answer for 1 s (device.timeout_s)";
    const std::vector<std::string> expected{named, named + ": rank 1 waits for it through rank 0",
                                            named + ": rank 2 waits for it through rank 1, 0", ""};
    int naming = 0;
    for (size_t rank = 0; rank < 3; ++rank) {
        CAPTURE(rank, messages[rank]);
        CHECK((messages[rank] == expected[rank] || messages[rank] == "stops"));
        naming += messages[rank] == expected[rank];
    }
    CHECK(naming >= 1);  // whoever gives up first tells the others, who have nothing to add
}

TEST_CASE("all ranks that do not answer are named") {
    int naming = 0;
    for (const std::string& message : told_in_a_ring(5, {1, 3})) {
        CHECK((message.empty() || message == "stops" ||
               message == "ranks 1, 3 did not answer for 1 s (device.timeout_s)"));
        naming += message.starts_with("ranks");
    }
    CHECK(naming >= 1);
}

TEST_CASE("a rank at work is waited for beyond the deadline, if it says so") {
    const auto wait_for_work = [](bool says_so) {
        return message_of(3, [&](Communicator& comm) {
            comm.set_timeout(0.8);
            if (comm.rank() == 1) {
                comm.begin_work();
                work_for(3, [&] {
                    if (says_so) comm.still_working();
                });
            }
            comm.barrier();
        });
    };
    CHECK(wait_for_work(true).empty());
    CHECK_THAT(wait_for_work(false), Catch::StartsWith("rank 1 did not answer for 0.8 s (device.timeout_s)"));
}

TEST_CASE("work on another thread says so by itself, and its error is the caller's") {
    CHECK(message_of(3, [](Communicator& comm) {
              comm.set_timeout(0.8);
              if (comm.rank() == 2) comm.work_aside([] { work_for(3, [] {}); });
              comm.barrier();
          }).empty());
    CHECK(message_of(2, [](Communicator& comm) {
              if (comm.rank() == 1) comm.work_aside([] { fail(ErrorKind::kData, "no room"); });
              comm.barrier();
          }) == "no room");
}

TEST_CASE("a rank that begins to wait late is given its full time by those who have waited longer") {
    // Rank 0 waits for 1, which works and then waits for 2, which has begun only then and is quiet for less than a
    // deadline.
    CHECK(message_of(3, [](Communicator& comm) {
              comm.set_timeout(1.6);
              std::byte token{};
              const auto pass = [&](int to, int from) {
                  const std::span<std::byte> bytes(&token, 1);
                  comm.send_recv(to, bytes, from, bytes);
              };
              if (comm.rank() == 1) {
                  comm.begin_work();
                  work_for(1.4, [&] { comm.still_working(); });
                  pass(2, Communicator::kNobody);
                  pass(Communicator::kNobody, 2);
                  pass(0, Communicator::kNobody);
              }
              if (comm.rank() == 2) {
                  pass(Communicator::kNobody, 1);
                  work_for(1.2, [] {});
                  pass(1, Communicator::kNobody);
              }
              if (comm.rank() == 0) pass(Communicator::kNobody, 1);
          }).empty());
}

TEST_CASE("a wait for no rank in particular goes on while one says that it is at work, and ends if all only wait") {
    const auto wait_for_somebody = [](bool works) {
        std::atomic<bool> done = false;
        return message_of(2, [&](Communicator& comm) {
            comm.set_timeout(0.8);
            if (comm.rank() == 1 && works) {
                comm.begin_work();
                work_for(2.6, [&] { comm.still_working(); });  // more than twice the deadline
                done = true;
            }
            for (Patience patience(comm); !done;) patience.pause(Communicator::kNobody);
        });
    };
    CHECK(wait_for_somebody(true).empty());
    CHECK(wait_for_somebody(false) == "an all-reduce did not end within 1.6 s (twice device.timeout_s)");
}

TEST_CASE("ranks that wait for each other are told so") {
    const std::string message = message_of(2, [](Communicator& comm) {
        comm.set_timeout(0.5);
        std::byte never{};
        comm.send_recv(Communicator::kNobody, {}, 1 - comm.rank(), {&never, 1});
    });
    CHECK_THAT(message, Catch::EndsWith(" did not answer for 0.5 s (device.timeout_s): ranks wait for each other"));
}

TEST_CASE("ranks that fail at about the same time know of each other and of who was first") {
    std::vector<Failures> failures(4);
    run_thread_world(4, [&](Communicator& comm) {
        comm.barrier();
        if (comm.rank() == 3) return;
        if (comm.rank() != 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        failures[static_cast<size_t>(comm.rank())] = comm.announce_failure();
    });
    for (const int rank : {0, 1, 2}) {
        CAPTURE(rank);
        CHECK(failures[static_cast<size_t>(rank)].count == 3);
        CHECK(failures[static_cast<size_t>(rank)].first == 1);
    }
}

TEST_CASE("rank 0 hears the pace of every rank") {
    std::vector<double> paces;
    run_thread_world(3, [&](Communicator& comm) {
        comm.tell_pace(1 + comm.rank());
        comm.barrier();
        if (comm.rank() != 0) return;
        paces = comm.take_paces();
        CHECK(comm.take_paces() == std::vector<double>{0, 0, 0});
    });
    CHECK(paces == std::vector<double>{1, 2, 3});
}

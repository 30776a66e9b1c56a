// A part of a job as a world of its own: the cases of every communicator, side by side, and with the job between them.
#include "comm/sub_communicator.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "comm/collective_cases.hpp"
#include "comm/reducer_cases.hpp"
#include "comm/thread_communicator.hpp"
#include "core/error.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string fault_in_reduction(Communicator& comm) {
    ReducerCase c;
    c.shards = 6;
    c.elements = 5000;
    c.steps = {std::vector<int64_t>(6, 3), {3, 0, 0, 3, 3, 1}};
    return fault_in_canonical(comm, c);
}

std::string message_of(int world, FunctionRef<void(Communicator&)> body) {
    try {
        run_thread_world(world, body);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("collectives, messages and reductions work in worlds side by side, and in the job between them") {
    for (const int ranks : {1, 2, 5, 7}) {
        for (int split = 0; split <= ranks; ++split) {
            std::vector<std::string> faults(static_cast<size_t>(ranks));
            run_thread_world(ranks, [&](Communicator& job) {
                std::string& fault = faults[static_cast<size_t>(job.rank())];
                for (int number = 0; number < 5 && fault.empty(); ++number) {
                    const bool left = job.rank() < split;
                    const auto world =
                        make_sub_communicator(job, left ? 0 : split, left ? split : ranks - split, number);
                    if (world->rank() != job.rank() - (left ? 0 : split)) fault = "rank";
                    if (fault.empty()) fault = fault_in_collectives(*world);
                    if (fault.empty()) fault = fault_in_messages(*world);
                    if (fault.empty()) fault = fault_in_reduction(*world);
                    if (fault.empty()) fault = fault_in_collectives(job);
                }
            });
            INFO("ranks " << ranks << " split " << split);
            CHECK(faults == std::vector<std::string>(static_cast<size_t>(ranks)));
        }
    }
}

TEST_CASE("messages of a world are not taken for the job's, nor for the next world's") {
    run_thread_world(2, [](Communicator& job) {
        const int peer = 1 - job.rank();
        const auto first = make_sub_communicator(job, 0, 2, 0);
        const auto second = make_sub_communicator(job, 0, 2, 1);
        // Sent in one order, asked for in another, all with one tag.
        const std::vector<Communicator*> sent{first.get(), &job, second.get()};
        const std::vector<Communicator*> asked{&job, second.get(), first.get()};
        std::vector<int> out{10, 11, 12};
        for (size_t i = 0; i < 3; ++i) {
            Request& request = sent[i]->send(static_cast<int>(i), peer, 3, std::as_bytes(std::span(&out[i], 1)));
            sent[i]->wait(request, peer);
        }
        for (size_t i = 0; i < 3; ++i) {
            int in = 0;
            asked[i]->send_recv(Communicator::kNobody, {}, peer, std::as_writable_bytes(std::span(&in, 1)), 3);
            if (in != (i == 0 ? 11 : i == 1 ? 12 : 10)) fail(ErrorKind::kRuntime, "message {} is {}", i, in);
        }
        job.barrier();
    });
}

TEST_CASE("a silent rank of a world is named by its number in the job") {
    std::mutex mutex;
    std::condition_variable changed;
    bool given_up = false;
    std::vector<std::string> messages;
    const auto told = [&](const Error& error) {
        const std::lock_guard lock(mutex);
        messages.emplace_back(error.what());
    };
    run_thread_world(3, [&](Communicator& job) {
        job.set_timeout(1);
        std::byte never{};
        if (job.rank() == 0) {  // of no world, and waits for one that waits
            try {
                job.send_recv(Communicator::kNobody, {}, 1, {&never, 1});
            } catch (const Error& error) {
                told(error);
            }
            return;
        }
        const auto world = make_sub_communicator(job, 1, 2, 0);
        if (world->rank() == 1) {  // alive, but silent
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return given_up; });
            return;
        }
        try {
            world->send_recv(Communicator::kNobody, {}, 1, {&never, 1});
        } catch (const Error& error) {
            told(error);
        }
        const std::lock_guard lock(mutex);
        given_up = true;
        changed.notify_all();
    });
    // Which of the two gives up first is open; it tells the reason, and the other stops because of it.
    REQUIRE(messages.size() == 2);
    const std::string reason = "rank 2 did not answer for 1 s (device.timeout_s)";
    const std::vector<std::string> known{reason, reason + ": rank 0 waits for it through rank 1",
                                         "rank 0 stops since rank 1 has failed",
                                         "rank 1 stops since rank 0 has failed"};
    for (const std::string& message : messages) {
        INFO(message);
        CHECK(std::count(known.begin(), known.end(), message) == 1);
    }
    CHECK(std::any_of(messages.begin(), messages.end(), [&](const std::string& m) { return m.starts_with(reason); }));
}

TEST_CASE("a world that this rank is not part of, or a peer outside it, is refused") {
    CHECK(message_of(3, [](Communicator& job) {
              if (job.rank() == 2) make_sub_communicator(job, 0, 2, 0);
          }) == "rank 2 of 3 cannot be of a world of the ranks 0 … 1");
    CHECK(message_of(3, [](Communicator& job) {
              if (job.rank() == 0) return;
              const auto world = make_sub_communicator(job, 1, 2, 0);
              if (world->rank() == 0) world->send(0, 2, 0, {});
          }) == "a message sent to rank 2 by rank 0 in a world of 2 (ranks 1 … 2 of the job)");
}

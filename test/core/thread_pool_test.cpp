// The thread pool: every part runs once, at the same time as the others, errors come out, and a run allocates nothing.
#include "core/thread_pool.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "support/allocation_counter.hpp"

namespace lockstep {
namespace {

TEST_CASE("every part runs once, on threads of its own, and part 0 is the caller's", "[thread_pool]") {
    for (int threads = 1; threads <= 5; ++threads) {
        ThreadPool pool(threads);
        CHECK(pool.size() == threads);
        std::vector<std::thread::id> first(static_cast<size_t>(threads));
        for (int round = 0; round < 200; ++round) {
            std::vector<int> calls(static_cast<size_t>(threads), 0);
            std::vector<std::thread::id> ids(static_cast<size_t>(threads));
            pool.run([&](int part, int parts) {
                if (parts == threads) ++calls[static_cast<size_t>(part)];
                ids[static_cast<size_t>(part)] = std::this_thread::get_id();
            });
            REQUIRE(calls == std::vector<int>(static_cast<size_t>(threads), 1));
            REQUIRE(ids[0] == std::this_thread::get_id());
            if (round == 0) first = ids;
            REQUIRE(ids == first);
        }
    }
}

TEST_CASE("parts run at the same time: each can wait for all the others", "[thread_pool]") {
    ThreadPool pool(4);
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> arrived{0};
        pool.run([&](int, int parts) {
            arrived.fetch_add(1);
            arrived.notify_all();
            for (int seen = arrived.load(); seen != parts; seen = arrived.load()) arrived.wait(seen);
        });
        CHECK(arrived == 4);
    }
}

TEST_CASE("what a run wrote is there when it returns", "[thread_pool]") {
    ThreadPool pool(3);
    std::vector<int64_t> values(1000, 0);
    for (int round = 1; round <= 300; ++round) {
        pool.run([&](int part, int parts) {
            const IndexRange range = part_of(1000, part, parts);
            for (int64_t i = range.begin; i < range.end; ++i) values[static_cast<size_t>(i)] += i;
        });
        REQUIRE(values[999] == 999 * round);
        REQUIRE(values[1] == round);
    }
}

TEST_CASE("an exception of any part is rethrown after all parts are done, and the pool goes on", "[thread_pool]") {
    for (const int threads : {1, 2, 4}) {
        ThreadPool pool(threads);
        for (int thrower = 0; thrower < threads; ++thrower) {
            std::atomic<int> done{0};
            const auto body = [&](int part, int) {
                if (part == thrower) throw std::runtime_error("part " + std::to_string(part));
                done.fetch_add(1);
            };
            CHECK_THROWS_WITH(pool.run(body), "part " + std::to_string(thrower));
            CHECK(done == threads - 1);
        }
        CHECK_THROWS_AS(pool.run([](int, int) { throw std::runtime_error("all"); }), std::runtime_error);
        int calls = 0;
        pool.run([&](int part, int) {
            if (part == 0) ++calls;
        });
        CHECK(calls == 1);
    }
}

TEST_CASE("a run allocates nothing", "[thread_pool]") {
    ThreadPool pool(3);
    std::atomic<int> calls{0};
    const auto body = [&](int, int) { calls.fetch_add(1); };
    pool.run(body);
    const test::AllocationCounter counter;
    for (int round = 0; round < 100; ++round) pool.run(body);
    const int64_t allocations = counter.count();
    CHECK(allocations == 0);
    CHECK(calls == 303);
}

TEST_CASE("a pool that is never run can be thrown away, and one of no threads is refused", "[thread_pool]") {
    for (int i = 0; i < 20; ++i) ThreadPool unused(3);
    CHECK_THROWS_AS(ThreadPool(0), Error);
}

// Not run by default, since it watches a clock.
TEST_CASE("an idle pool takes no processor time", "[.][benchmark]") {
    ThreadPool pool(3);
    pool.run([](int, int) {});
    timespec before{};
    timespec after{};
    // The wait here is the subject of the test: what the workers use while nothing happens.
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double used =
        static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
    CHECK(used < 0.02);  // spinning threads would use 0.1
}

TEST_CASE("parts cover a range once, in order, with borders at multiples of the grain", "[thread_pool]") {
    for (const int64_t n : {0, 1, 5, 16, 17, 100, 1003}) {
        for (int parts = 1; parts <= 9; ++parts) {
            for (const int64_t grain : {1, 2, 16, 200}) {
                int64_t next = 0;
                for (int part = 0; part < parts; ++part) {
                    const IndexRange range = part_of(n, part, parts, grain);
                    REQUIRE(range.begin == next);
                    REQUIRE(range.begin <= range.end);
                    REQUIRE((range.end % grain == 0 || range.end == n));
                    REQUIRE(range.end - range.begin <= ((n + grain - 1) / grain / parts + 1) * grain);
                    next = range.end;
                }
                REQUIRE(next == n);
            }
        }
    }
}

TEST_CASE("the affinity mask holds at least one CPU", "[thread_pool]") {
    CHECK(available_cpus() >= 1);
}

// Not run by default: `core_thread_pool [benchmark]` prints what an empty run costs here.
TEST_CASE("the cost of an empty run", "[.][benchmark]") {
    for (const int threads : {1, 2, 4}) {
        ThreadPool pool(threads);
        constexpr int kRuns = 20000;
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < kRuns; ++i) pool.run([](int, int) {});
        const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
        fmt::print("{} threads on {} CPUs: {:.2f} us a run\n", threads, available_cpus(), time.count() / kRuns);
    }
}

}  // namespace
}  // namespace lockstep

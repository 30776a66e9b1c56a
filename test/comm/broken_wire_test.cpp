// A rank that cannot speak to the others, or cannot be started: what it does then ends in order, with the right error.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "comm/thread_communicator.hpp"
#include "comm/world_end.hpp"
#include "core/error.hpp"

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LOCKSTEP_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_TEST_SANITIZED
#endif

using namespace lockstep;

namespace {

/// One of two ranks; every word to the other one fails.
class BrokenWire final : public Communicator {
  public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    int local_rank() const override { return 0; }
    int local_size() const override { return 2; }
    Request& send(int /*slot*/, int /*to*/, int /*tag*/, std::span<const std::byte> /*bytes*/) override { broken(); }
    Request& receive(int /*slot*/, int /*from*/, int /*tag*/, std::span<std::byte> /*bytes*/) override { broken(); }
    void barrier() override { broken(); }
    void broadcast(int /*root*/, std::vector<std::byte>& /*bytes*/) override { broken(); }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> /*bytes*/) override { broken(); }
    void all_reduce_native(std::span<float> /*values*/) override { broken(); }
    [[noreturn]] void abort(int /*code*/) override { broken(); }

  protected:
    void send_news(int /*to*/, const News& /*news*/) override { broken(); }
    void collect_news() override { broken(); }

  private:
    [[noreturn]] static void broken() { fail(ErrorKind::kRuntime, "the wire is broken"); }
};

#ifndef LOCKSTEP_TEST_SANITIZED
/// While it lives, this process gets only so much more memory.
class MemoryLimit {
  public:
    explicit MemoryLimit(rlim_t more) {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        getrlimit(RLIMIT_AS, &before_);
        const rlimit limit{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
        REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;

  private:
    rlimit before_{};
};
#endif

}  // namespace

TEST_CASE("work on another thread ends before the error goes on of a rank that cannot speak meanwhile") {
    BrokenWire comm;
    comm.set_timeout(0.2);
    std::atomic<bool> finished = false;
    CHECK_THROWS_WITH(comm.work_aside([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        finished = true;
    }),
                      "the wire is broken");
    CHECK(finished);
}

TEST_CASE("a rank that cannot tell its failure keeps its own error") {
    BrokenWire comm;
    Failures failures;
    CHECK_NOTHROW(failures = comm.announce_failure());
    CHECK(failures.count == 1);
    CHECK(failures.first == 0);
}

TEST_CASE("a process ended by a guard ends with the guard's code") {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const EndGuard guard(0.05, "", 5);
        sleep(60);
        _exit(1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 5);
}

#ifndef LOCKSTEP_TEST_SANITIZED
TEST_CASE("a world of more threads than this process can start is refused, and those that have started end") {
    const MemoryLimit limit(rlim_t{68} << 20);  // a few stacks
    CHECK_THROWS_WITH(run_thread_world(100, [](Communicator& comm) { comm.barrier(); }),
                      Catch::StartsWith("100 ranks in one process: only ") && Catch::Contains("use fewer ranks"));
}
#endif

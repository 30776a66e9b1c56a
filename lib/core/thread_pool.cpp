#include "core/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Body = FunctionRef<void(int part, int parts)>;

// Longer than the few microseconds between two operations of a step, shorter than what a neighbour on the core would
// miss.
constexpr auto kSpin = std::chrono::microseconds(15);
constexpr int kLooksPerClockRead = 32;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// How one thread waits for a word to change: it spins for kSpin and then sleeps on a futex. Where spinning has lately
// been in vain (the other thread needs this very core, or has more to do), it sleeps at once and only now and then
// tries again.
class Waiter {
  public:
    explicit Waiter(bool may_spin) : may_spin_(may_spin) {}

    /// Returns what `word` holds once that differs from `old`.
    uint32_t wait_for_change(const std::atomic<uint32_t>& word, uint32_t old) {
        if (may_spin_ && (in_vain_ < kPatience || ++waits_ % kRetry == 0)) {
            const uint32_t now = spin(word, old);
            in_vain_ = now != old ? 0 : in_vain_ + 1;
            if (now != old) return now;
        }
        for (;;) {
            const uint32_t now = word.load(std::memory_order_acquire);
            if (now != old) return now;
            word.wait(old, std::memory_order_acquire);
        }
    }

  private:
    static constexpr uint32_t kPatience = 4;
    static constexpr uint32_t kRetry = 32;

    static uint32_t spin(const std::atomic<uint32_t>& word, uint32_t old) {
        const Clock::time_point end = Clock::now() + kSpin;
        do {
            for (int look = 0; look < kLooksPerClockRead; ++look) {
                const uint32_t now = word.load(std::memory_order_acquire);
                if (now != old) return now;
                relax();
            }
        } while (Clock::now() < end);
        return old;
    }

    const bool may_spin_;
    uint32_t in_vain_ = 0;
    uint32_t waits_ = 0;
};

}  // namespace

struct ThreadPool::State {
    const int threads;
    const bool may_spin;  // not where threads outnumber CPUs: a spinning one would hold up the one it waits for
    Waiter caller;

    // Written by run() before `round` changes, read by the workers after they saw the change.
    const Body* body = nullptr;
    bool stopping = false;

    // On cache lines of their own: workers look at `round` while others count down `running`.
    alignas(64) std::atomic<uint32_t> round{0};
    alignas(64) std::atomic<uint32_t> running{0};
    alignas(64) std::atomic_flag failed = ATOMIC_FLAG_INIT;
    std::exception_ptr failure;  // of the first part that threw; read after `running` is 0

    std::vector<std::thread> workers;

    explicit State(int threads_) : threads(threads_), may_spin(available_cpus() >= threads_), caller(may_spin) {}
    ~State() { stop(); }

    void start_round() {
        round.fetch_add(1, std::memory_order_release);
        round.notify_all();
    }

    void stop() {
        stopping = true;
        start_round();
        for (std::thread& worker : workers) worker.join();
        workers.clear();
    }

    void call(const Body& function, int part) noexcept {
        try {
            function(part, threads);
        } catch (...) {
            if (!failed.test_and_set(std::memory_order_relaxed)) failure = std::current_exception();
        }
    }

    void work(int part) {
        Waiter waiter(may_spin);
        uint32_t seen = 0;
        for (;;) {
            seen = waiter.wait_for_change(round, seen);
            if (stopping) return;
            call(*body, part);
            if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
        }
    }

    void wait_for_workers() {
        for (uint32_t left = running.load(std::memory_order_acquire); left != 0;) {
            left = caller.wait_for_change(running, left);
        }
    }
};

ThreadPool::ThreadPool(int threads) {
    if (threads < 1) fail(ErrorKind::kUsage, "a thread pool of {} threads: at least 1 is needed", threads);
    state_ = std::make_unique<State>(threads);
    state_->workers.reserve(static_cast<size_t>(threads - 1));
    for (int part = 1; part < threads; ++part) {
        try {
            state_->workers.emplace_back([state = state_.get(), part] { state->work(part); });
        } catch (const std::system_error& error) {
            fail(ErrorKind::kRuntime, "cannot start thread {} of {}: {}; use fewer threads or raise `ulimit -u`",
                 part + 1, threads, error.what());
        }
    }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const {
    return state_->threads;
}

void ThreadPool::run(Body body) {
    State& state = *state_;
    if (state.threads == 1) {
        body(0, 1);
        return;
    }
    state.body = &body;
    state.running.store(static_cast<uint32_t>(state.threads - 1), std::memory_order_relaxed);
    state.start_round();
    state.call(body, 0);
    state.wait_for_workers();
    if (state.failed.test(std::memory_order_relaxed)) {
        state.failed.clear(std::memory_order_relaxed);
        std::rethrow_exception(std::exchange(state.failure, nullptr));
    }
}

IndexRange part_of(int64_t n, int part, int parts, int64_t grain) {
    // Whole grains are dealt out; n may be near 2^62, so the product is avoided by dividing first.
    const int64_t grains = n / grain + (n % grain != 0);
    const auto border = [&](int64_t p) {
        const int64_t grain_number = grains / parts * p + grains % parts * p / parts;
        return grain_number >= grains ? n : grain_number * grain;
    };
    return {border(part), border(part + 1)};
}

int available_cpus() {
    // The mask may need more room than cpu_set_t's 1,024 CPUs; the kernel says so with EINVAL.
    for (int room = CPU_SETSIZE; room <= (1 << 20); room *= 2) {
        cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(room));
        if (mask == nullptr) break;
        const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(room));
        const int result = ::sched_getaffinity(0, bytes, mask);
        const int error = errno;
        const int cpus = result == 0 ? CPU_COUNT_S(bytes, mask) : 0;
        CPU_FREE(mask);
        if (result == 0) return std::max(cpus, 1);
        if (error != EINVAL) break;
    }
    return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

}  // namespace lockstep

// The scheduler of a block's threads; see block_runner.hpp.
#include "test/emulation/block_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "test/emulation/settings.hpp"

namespace lockstep::emulation {

constinit thread_local Position position{};

namespace {

// The runner whose kernel runs on this thread; kernels ask for it at every barrier.
constinit thread_local BlockRunner* current [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace

void BlockRunner::run(const LaunchSpec& spec, KernelCall& kernel, std::size_t shared_limit, std::uint64_t number) {
    if (torn_) {
        idle_.clear();
        for (Fiber& fiber : fibers_) {
            fiber.restart();
            idle_.push_back(&fiber);
        }
        fault_.reset();
    }
    torn_ = true;
    current = this;
    kernel_ = &kernel;
    kernel_->bind();
    const dim3 b = spec.block, g = spec.grid;
    count_ = b.x * b.y * b.z;
    index_.resize(count_);
    for (unsigned t = 0; t < count_; ++t) index_[t] = {t % b.x, t / b.x % b.y, t / (b.x * b.y)};
    order_threads(number);
    holder_.resize(count_);
    ready_.resize(count_);
    ready_first_ = ready_count_ = 0;
    warps_.assign((count_ + 31) / 32, Warp{});
    position.block_dim = {b.x, b.y, b.z};
    position.grid_dim = {g.x, g.y, g.z};
    shared_.begin_grid(spec.shared, shared_limit);

    // Seed 0 takes the blocks in order, the others from a random place on in steps that visit each one once.
    const std::uint64_t blocks = std::uint64_t{g.x} * g.y * g.z;
    std::uint64_t at = 0, step = 1;
    if (settings().seed != 0) {
        at = seeded(2 * number) % blocks;
        step = seeded(2 * number + 1) % blocks | 1;
        while (std::gcd(step, blocks) != 1) ++step;
    }
    for (std::uint64_t i = 0; i < blocks; ++i, at = (at + step) % blocks) {
        run_block({static_cast<unsigned>(at % g.x), static_cast<unsigned>(at / g.x % g.y),
                   static_cast<unsigned>(at / (std::uint64_t{g.x} * g.y))});
    }
    torn_ = false;
}

void BlockRunner::order_threads(std::uint64_t number) {
    order_.resize(count_);
    std::iota(order_.begin(), order_.end(), std::uint16_t{0});
    if (settings().seed == 1) std::reverse(order_.begin(), order_.end());
    if (settings().seed > 1) std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seeded(number)));
}

void BlockRunner::run_block(const uint3& block) {
    position.block = block;
    next_ = finished_ = at_barrier_ = 0;
    shared_.begin_block();
    running_ = &idle_fiber();
    switch_fiber(main_, *running_);
    if (fault_) throw Fault(*fault_);
    shared_.end_block();
}

Fiber& BlockRunner::idle_fiber() {
    if (idle_.empty()) return fibers_.emplace_back(fiber_entry, fibers_.size());
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return *fiber;
}

void BlockRunner::fiber_entry() {
    fiber_begins();
    current->run_threads(*current->running_);
}

inline void BlockRunner::go_to(std::uint16_t thread) {
    position.thread = index_[thread];
    position.linear = thread;
}

void BlockRunner::run_threads(Fiber& self) {
    for (;;) {
        while (next_ < count_ && !fault_) {
            go_to(order_[next_++]);
            try {
                kernel_->run_thread();
            } catch (const Fault& fault) {
                fault_ = fault;
            }
            ++finished_;
        }
        idle_.push_back(&self);
        running_ = &next_fiber();
        switch_fiber(self, *running_);
    }
}

inline Fiber& BlockRunner::next_fiber() {
    if (fault_) return main_;
    if (next_ < count_) return idle_fiber();
    if (ready_count_ != 0) {
        const std::uint16_t thread = ready_[ready_first_];
        ready_first_ = ready_first_ + 1 == count_ ? 0 : ready_first_ + 1;
        if (--ready_count_ != 0) holder_[ready_[ready_first_]]->prefetch();
        return *holder_[thread];
    }
    if (finished_ != count_) fault_ = stuck();
    return main_;
}

Fault BlockRunner::stuck() const {
    const unsigned in_warp_operation = count_ - finished_ - at_barrier_;
    if (in_warp_operation == 0) {
        return {cudaErrorLaunchFailure,
                fmt::format("__syncthreads() at {}:{} is reached by {} threads of a block, {} have "
                            "left the kernel before it",
                            barrier_file_, barrier_line_, at_barrier_, finished_)};
    }
    return {
        cudaErrorLaunchFailure,
        fmt::format("threads of a block wait for each other for ever: {} in a warp operation, {} at __syncthreads(), "
                    "{} have left the kernel",
                    in_warp_operation, at_barrier_, finished_)};
}

inline void BlockRunner::suspend(std::uint16_t thread) {
    Fiber& self = *running_;
    holder_[thread] = &self;
    running_ = &next_fiber();
    switch_fiber(self, *running_);
    go_to(thread);
}

inline void BlockRunner::barrier(const char* file, int line) {
    const auto thread = static_cast<std::uint16_t>(position.linear);
    if (at_barrier_ == 0) {
        barrier_file_ = file;
        barrier_line_ = line;
    } else if (line != barrier_line_) {
        fail(fmt::format("threads of a block stand at different __syncthreads(): lines {} and {} of {}", barrier_line_,
                         line, file));
    }
    if (++at_barrier_ == count_) {
        release_barrier(thread);  // the last to arrive goes on without a switch
    } else {
        suspend(thread);
    }
}

void BlockRunner::release_barrier(std::uint16_t last) {
    at_barrier_ = 0;
    ready_first_ = 0;
    ready_count_ = count_ - 1;
    std::size_t i = 0;
    for (const std::uint16_t thread : order_) {
        if (thread != last) ready_[i++] = thread;
    }
}

std::uint64_t BlockRunner::meet(unsigned mask, std::uint64_t value, int source, bool vote) {
    const auto thread = static_cast<std::uint16_t>(position.linear);
    const unsigned own = thread % 32, first = thread - own;
    if (count_ - first < 32) mask &= (1U << (count_ - first)) - 1;  // lanes that do not exist
    Warp& warp = warps_[first / 32];
    if ((mask >> own & 1) == 0) fail("a thread calls a warp operation whose mask does not name it");
    if (warp.arrived != 0 && (warp.mask != mask || warp.vote != vote)) {
        fail("threads of a warp meet in different warp operations, or with different masks");
    }
    warp.mask = mask;
    warp.vote = vote;
    warp.value[own] = value;
    warp.source[own] = source;
    warp.arrived |= 1U << own;
    if (warp.arrived != mask) {
        suspend(thread);
        return warp.result[own];
    }
    complete(warp, first, own);
    return warp.result[own];
}

void BlockRunner::complete(Warp& warp, unsigned first, unsigned caller) {
    std::uint64_t votes = 0;
    for (unsigned i = 0; i < 32; ++i) {
        if (warp.vote && (warp.mask >> i & 1) != 0 && warp.value[i] != 0) votes |= std::uint64_t{1} << i;
    }
    for (unsigned k = 0; k < 32; ++k) {
        const unsigned i = settings().seed == 0 ? k : 31 - k;
        if ((warp.mask >> i & 1) == 0) continue;
        const auto source = static_cast<unsigned>(warp.source[i]);
        const bool given = source < 32 && (warp.mask >> source & 1) != 0;
        // A value from a lane outside the mask is undefined: all ones, not a number of any type.
        warp.result[i] = warp.vote ? votes : given ? warp.value[source] : ~std::uint64_t{0};
        if (i == caller) continue;
        ready_[(ready_first_ + ready_count_) % count_] = static_cast<std::uint16_t>(first + i);
        ++ready_count_;
    }
    warp.arrived = 0;
}

std::uint64_t BlockRunner::exchange(unsigned mask, std::uint64_t value, int source) {
    return meet(mask, value, source, false);
}

unsigned BlockRunner::ballot(unsigned mask, bool predicate) {
    return static_cast<unsigned>(meet(mask, predicate ? 1 : 0, 0, true));
}

void barrier(const char* file, int line) {
    current->barrier(file, line);
}
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source) {
    return current->exchange(mask, value, source);
}
unsigned ballot(unsigned mask, bool predicate) {
    return current->ballot(mask, predicate);
}
void* static_shared(const void* identity, std::size_t bytes, std::size_t alignment) {
    return current->shared().array(identity, bytes, alignment);
}
void* dynamic_shared() {
    return current->shared().dynamic();
}

}  // namespace lockstep::emulation

// Runs the blocks of a grid, one after another, on one executor thread. A fiber runs thread after thread of a block as
// a plain loop until one of them waits (at __syncthreads or in a warp operation); only then is a second fiber taken. So
// kernels without barriers cost a loop, and kernels with them one switch of stacks for each thread and barrier.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "test/emulation/fiber.hpp"
#include "test/emulation/kernel_call.hpp"
#include "test/emulation/runtime.hpp"
#include "test/emulation/shared_memory.hpp"

namespace lockstep::emulation {

class BlockRunner {
  public:
    /// Runs every thread of every block. `number` is the launch's number on its device: with the seed it decides the
    /// order of blocks and threads. Throws the Fault of the first thread that fails.
    void run(const LaunchSpec& spec, KernelCall& kernel, std::size_t shared_limit, std::uint64_t number);

    // For the running thread.
    void barrier(const char* file, int line);
    std::uint64_t exchange(unsigned mask, std::uint64_t value, int source);
    unsigned ballot(unsigned mask, bool predicate);
    SharedMemory& shared() { return shared_; }

  private:
    struct Warp {
        unsigned arrived = 0, mask = 0;
        bool vote = false;
        std::uint64_t value[32], result[32];
        int source[32];
    };
    static void fiber_entry();
    void run_threads(Fiber& self);
    void run_block(const uint3& block);
    void order_threads(std::uint64_t number);
    void suspend(std::uint16_t thread);
    Fiber& next_fiber();
    Fiber& idle_fiber();
    void release_barrier(std::uint16_t last);
    void complete(Warp& warp, unsigned first, unsigned caller);
    std::uint64_t meet(unsigned mask, std::uint64_t value, int source, bool vote);
    void go_to(std::uint16_t thread);
    Fault stuck() const;

    Fiber main_;
    std::deque<Fiber> fibers_;
    std::vector<Fiber*> idle_;
    Fiber* running_ = nullptr;
    SharedMemory shared_;
    bool torn_ = false;  // a kernel was left in the middle: fibers hold threads that will never go on

    KernelCall* kernel_ = nullptr;
    unsigned count_ = 0;                // threads of a block
    std::vector<uint3> index_;          // threadIdx by thread number
    std::vector<std::uint16_t> order_;  // thread numbers as they start
    std::vector<Fiber*> holder_;        // the fiber that a waiting thread stands on
    std::vector<std::uint16_t> ready_;  // ring of waiting threads that may go on
    std::size_t ready_first_ = 0, ready_count_ = 0;
    std::vector<Warp> warps_;
    unsigned next_ = 0, finished_ = 0, at_barrier_ = 0;
    const char* barrier_file_ = nullptr;
    int barrier_line_ = 0;
    std::optional<Fault> fault_;
};

}  // namespace lockstep::emulation

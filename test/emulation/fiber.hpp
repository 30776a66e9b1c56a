// Stacks on which threads of a block wait for each other, all within one executor thread. A switch is a dozen
// instructions on x86-64, setjmp and longjmp elsewhere, and swapcontext with the sanitizer's calls in builds with
// AddressSanitizer.
#pragma once

#include <cstddef>
#include <memory>

namespace lockstep::emulation {

struct FiberState;

class Fiber {
  public:
    /// The fiber of the calling thread's own stack: what switches back when the fibers are done.
    Fiber();
    /// A fiber that runs `entry`, which never returns, on a stack of its own.
    Fiber(void (*entry)(), std::size_t number);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Forgets where the fiber stood; its next switch starts `entry` anew.
    void restart();
    /// Asks for the memory that the next switch to it will touch.
    void prefetch() const {
        __builtin_prefetch(stack_pointer_);
        __builtin_prefetch(static_cast<const char*>(stack_pointer_) + 64);
    }

  private:
    friend void switch_fiber(Fiber& from, Fiber& to);

    void* stack_pointer_ = nullptr;  // all that a switch on x86-64 needs: 256 fibers stay in the first-level cache
    std::unique_ptr<FiberState> state_;
};

/// Leaves `from`, the running fiber, for `to`; returns when somebody switches to `from`.
void switch_fiber(Fiber& from, Fiber& to);

/// The first thing that every entry calls.
void fiber_begins();

/// Whether an address lies in the inaccessible page below a fiber's stack.
bool in_stack_guard(const void* address);

}  // namespace lockstep::emulation

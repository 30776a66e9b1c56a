// Three ways to switch stacks; see fiber.hpp. Stacks are never given back: an executor needs them for every kernel.
#undef _FORTIFY_SOURCE  // its longjmp refuses to leave a fiber's stack
#include "test/emulation/fiber.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "test/emulation/sanitizer.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define LS_FIBER_UCONTEXT 1
#include <ucontext.h>
#elif defined(__x86_64__)
#define LS_FIBER_ASSEMBLY 1
#else
#define LS_FIBER_SETJMP 1
#include <setjmp.h>
#include <ucontext.h>
#endif

namespace lockstep::emulation {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr std::size_t kStack = 256 << 10;
constexpr std::size_t kPitch = kGuard + kStack;
constexpr std::size_t kStacks = std::size_t{1} << 16;  // 64 devices of 1,024 threads

// Addresses for all stacks of the process, so that a fault in a guard page is told from any other by a comparison.
char* stack_space() {
    static char* const space = [] {
        void* p = mmap(nullptr, kPitch * kStacks, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            std::fprintf(stderr, "emulated CUDA: cannot reserve addresses for the stacks of threads (ulimit -v?)\n");
            std::_Exit(2);
        }
        return static_cast<char*>(p);
    }();
    return space;
}

char* new_stack() {
    static std::atomic<std::size_t> taken{0};
    const std::size_t i = taken.fetch_add(1);
    char* const stack = stack_space() + i * kPitch + kGuard;
    if (i >= kStacks || mprotect(stack, kStack, PROT_READ | PROT_WRITE) != 0) {
        std::fprintf(stderr, "emulated CUDA: no memory for the stacks of threads\n");
        std::_Exit(2);
    }
    return stack;
}

// Stacks whose tops lie a power of two apart share cache sets: 256 threads would evict each other at every barrier.
std::size_t colour(std::size_t number) {
    return number * 1088 % (32 << 10) & ~std::size_t{63};
}

}  // namespace

struct FiberState {
    char* stack = nullptr;  // nullptr: the thread's own
    std::size_t bytes = 0;
    void (*entry)() = nullptr;
#if defined(LS_FIBER_SETJMP)
    jmp_buf registers;
    ucontext_t first;
    bool begun = false;
#elif defined(LS_FIBER_UCONTEXT)
    ucontext_t context;
    void* fake_stack = nullptr;
#endif
};

Fiber::Fiber() : state_(std::make_unique<FiberState>()) {
#if defined(LS_FIBER_SETJMP)
    state_->begun = true;
#endif
}

Fiber::Fiber(void (*entry)(), std::size_t number) : state_(std::make_unique<FiberState>()) {
    state_->stack = new_stack();
    state_->bytes = kStack - colour(number);
    state_->entry = entry;
    restart();
}

Fiber::~Fiber() = default;

bool in_stack_guard(const void* address) {
    const auto* p = static_cast<const char*>(address);
    return p >= stack_space() && p < stack_space() + kPitch * kStacks;
}

#if defined(LS_FIBER_ASSEMBLY)

// Saves the registers that a call preserves on the old stack and takes them from the new one.
extern "C" void lockstep_emulation_switch_stack(void** save, void* load);
asm(R"(
    .text
    .p2align 4
    .globl lockstep_emulation_switch_stack
    .hidden lockstep_emulation_switch_stack
    .type lockstep_emulation_switch_stack, @function
lockstep_emulation_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size lockstep_emulation_switch_stack, . - lockstep_emulation_switch_stack
)");

void Fiber::restart() {
    // Six registers, the entry as return address, and a null return address of the entry; at the entry the stack is
    // eight bytes off a multiple of 16, as after a call.
    auto* top = reinterpret_cast<std::uintptr_t*>(state_->stack + state_->bytes) - 1;
    top[0] = 0;
    *--top = reinterpret_cast<std::uintptr_t>(state_->entry);
    for (int i = 0; i < 6; ++i) *--top = 0;
    stack_pointer_ = top;
}

void switch_fiber(Fiber& from, Fiber& to) {
    lockstep_emulation_switch_stack(&from.stack_pointer_, to.stack_pointer_);
}

#else

void Fiber::restart() {
    unpoison(state_->stack, kStack);
#if defined(LS_FIBER_SETJMP)
    state_->begun = false;
    ucontext_t& context = state_->first;
#else
    state_->fake_stack = nullptr;
    ucontext_t& context = state_->context;
#endif
    getcontext(&context);
    context.uc_stack.ss_sp = state_->stack;
    context.uc_stack.ss_size = state_->bytes;
    context.uc_link = nullptr;
    makecontext(&context, state_->entry, 0);
}

#if defined(LS_FIBER_SETJMP)

void switch_fiber(Fiber& from, Fiber& to) {
    if (_setjmp((*from.state_).registers) != 0) return;
    if ((*to.state_).begun) _longjmp((*to.state_).registers, 1);
    (*to.state_).begun = true;
    setcontext(&(*to.state_).first);
}

#else

namespace {

// The fiber that was left last: the one that arrives tells the sanitizer where that one's stack was.
constinit thread_local FiberState* left = nullptr;

void arrive(void* fake_stack) {
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
    if (left != nullptr && left->stack == nullptr) {
        left->bytes = bytes;  // the thread's own stack is known only now
        left->context.uc_stack.ss_sp = const_cast<void*>(bottom);
    }
}

}  // namespace

void switch_fiber(Fiber& from, Fiber& to) {
    FiberState& a = (*from.state_);
    FiberState& b = (*to.state_);
    left = &a;
    __sanitizer_start_switch_fiber(&a.fake_stack, b.stack != nullptr ? b.stack : b.context.uc_stack.ss_sp, b.bytes);
    swapcontext(&a.context, &b.context);
    arrive(a.fake_stack);
}

#endif
#endif

void fiber_begins() {
#if defined(LS_FIBER_UCONTEXT)
    arrive(nullptr);
#endif
}

}  // namespace lockstep::emulation

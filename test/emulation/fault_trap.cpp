// See fault_trap.hpp.
#undef _FORTIFY_SOURCE  // its longjmp refuses to leave a fiber's stack
#include "test/emulation/fault_trap.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include "test/emulation/fiber.hpp"
#include "test/emulation/memory.hpp"
#include "test/emulation/runtime.hpp"
#include "test/emulation/sanitizer.hpp"

namespace lockstep::emulation {
namespace {

constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL};
std::array<struct sigaction, kSignals.size()> previous;

struct Trap {
    jmp_buf* recovery = nullptr;
    int signal = 0;
    const void* address = nullptr;
};
constinit thread_local Trap trap;

void write_line(const char* text) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nothing left to tell
}

void on_fault(int signal, siginfo_t* info, void*) {
    if (trap.recovery != nullptr && !kAddressSanitizer) {
        trap.signal = signal;
        trap.address = info->si_addr;
        _longjmp(*trap.recovery, 1);
    }
    const bool memory = signal == SIGSEGV || signal == SIGBUS;
    if (memory && device_memory().contains(info->si_addr)) {
        write_line("emulated CUDA: host code used a device pointer as if it were host memory\n");
    } else if (memory && pinned_memory().contains(info->si_addr)) {
        write_line("emulated CUDA: host code ran past pinned memory or used it after it was freed\n");
    } else if (memory && trap.recovery != nullptr) {
        write_line("emulated CUDA: a kernel ran past its memory\n");
    }
    // Whoever was there before (the sanitizer, the test runner, the default) reports the rest: the instruction faults
    // again on return.
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        if (kSignals[i] == signal) sigaction(signal, &previous[i], nullptr);
    }
}

std::string describe(int signal, const void* address) {
    if (signal == SIGFPE) return "a kernel divides an integer by zero";
    if (signal == SIGILL) return "a kernel uses a misaligned address";
    if (in_stack_guard(address)) return "a kernel needs more stack than a thread has";
    for (MemorySpace* space : {&device_memory(), &pinned_memory()}) {
        if (std::string text = space->describe_fault(address); !text.empty()) return "a kernel faults: " + text;
    }
    if (device_memory().contains(address))
        return "a kernel follows a device pointer that was not given by in, out or inout";
    return fmt::format("a kernel faults at {}: a wild pointer, or past its shared memory", address);
}

}  // namespace

void install_fault_handlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        struct sigaction now {};
        sigaction(kSignals[i], nullptr, &now);
        if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) continue;
        previous[i] = now;
        struct sigaction ours {};
        ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
        ours.sa_sigaction = on_fault;
        sigaction(kSignals[i], &ours, nullptr);
    }
}

void use_signal_stack() {
    if (kAddressSanitizer) return;  // it has given every thread one
    // Not in the thread's own block: a library that is loaded late has room there for a few hundred bytes.
    constexpr std::size_t kBytes = 64 << 10;
    static thread_local const std::unique_ptr<char[]> memory = std::make_unique<char[]>(kBytes);
    stack_t stack{};
    stack.ss_sp = memory.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
}

void run_trapped(const std::function<void()>& work) {
    jmp_buf recovery;
    // No signal mask is saved: the handlers block nothing (SA_NODEFER), and saving costs a system call.
    if (_setjmp(recovery) == 0) {
        trap.recovery = &recovery;
        try {
            work();
        } catch (...) {
            trap.recovery = nullptr;
            throw;
        }
        trap.recovery = nullptr;
        return;
    }
    trap.recovery = nullptr;
    fail(trap.signal == SIGILL ? cudaErrorMisalignedAddress : cudaErrorIllegalAddress,
         describe(trap.signal, trap.address));
}

}  // namespace lockstep::emulation

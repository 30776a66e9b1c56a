#include "train/stop_signal.hpp"

#include <unistd.h>
#include <csignal>
#include <cstring>
#include <initializer_list>

namespace lockstep {
namespace {

// The only things that the signal handler touches.
volatile std::sig_atomic_t requested = 0;
volatile std::sig_atomic_t speaks = 1;

void say(const char* text) {
    if (speaks == 0) return;
    // write(2) is safe in a handler; a lost line is no reason to fail.
    const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
    (void)written;
}

void on_signal(int signal) {
    const bool again = requested != 0 && signal != SIGUSR1;
    if (again && requested != SIGUSR1) _exit(1);
    if (requested == 0 || signal != SIGUSR1) requested = signal;
    if (signal != SIGUSR1)
        say("lockstep: asked to stop; a checkpoint follows at the next step (a second signal leaves at once)\n");
}

void handle_with(void (*handler)(int), std::initializer_list<int> signals) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    for (const int signal : signals) sigaction(signal, &action, nullptr);
}

}  // namespace

void install_stop_handlers() {
    handle_with(on_signal, {SIGUSR1, SIGTERM, SIGINT});
}

void let_stop_handlers_speak(bool speak) {
    speaks = speak ? 1 : 0;
}

void remove_stop_handlers() {
    handle_with(SIG_IGN, {SIGUSR1});
    handle_with(SIG_DFL, {SIGTERM, SIGINT});
}

int stop_signal() {
    return requested;
}

}  // namespace lockstep

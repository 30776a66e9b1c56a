#include "train/stop_signal.hpp"

#include <unistd.h>
#include <csignal>
#include <cstring>
#include <initializer_list>

namespace lockstep {
namespace {

// The one thing that a signal handler may touch.
volatile std::sig_atomic_t requested = 0;

void say(const char* text) {
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

}  // namespace

void install_stop_handlers() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

int stop_signal() {
    return requested;
}

}  // namespace lockstep

#include "comm/world_end.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr int kGraceMs = 2500;

/// What /proc says of a process. Read with system calls alone: a forked child of a process with threads may do no more.
struct ProcessFacts {
    bool alive = false;
    std::array<char, 64> name{};
    pid_t parent = 0;
    unsigned long long start = 0;  // tells a process from a later one with its number
};

ProcessFacts facts_of(pid_t pid) {
    ProcessFacts facts;
    std::array<char, 32> path{"/proc/"};
    std::array<char, 16> digits{};
    std::size_t count = 0;
    for (auto rest = static_cast<unsigned>(pid); rest > 0; rest /= 10)
        digits[count++] = static_cast<char>('0' + rest % 10);
    std::size_t at = 6;
    while (count > 0) path[at++] = digits[--count];
    std::memcpy(path.data() + at, "/stat", 6);
    const int fd = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return facts;
    std::array<char, 1024> text{};
    const ssize_t length = ::read(fd, text.data(), text.size() - 1);
    ::close(fd);
    const char* const open = length > 0 ? std::strchr(text.data(), '(') : nullptr;
    const char* const close = open != nullptr ? std::strrchr(text.data(), ')') : nullptr;
    if (close == nullptr) return facts;
    const auto name_length = std::min<std::size_t>(static_cast<std::size_t>(close - open - 1), facts.name.size() - 1);
    std::memcpy(facts.name.data(), open + 1, name_length);
    // After the name: state (field 3), parent (4), …, start time (22).
    int field = 2;
    for (const char* c = close + 1; *c != '\0'; ++c) {
        if (*c != ' ') continue;
        ++field;
        if (field == 3) facts.alive = c[1] != 'Z' && c[1] != 'X';
        if (field == 4) facts.parent = static_cast<pid_t>(std::strtol(c + 1, nullptr, 10));
        if (field == 22) facts.start = std::strtoull(c + 1, nullptr, 10);
    }
    return facts;
}

/// Open MPI's process above this one, past a few shells; 0 under anything else.
pid_t launcher() {
    constexpr std::array<std::string_view, 6> kNames{"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted"};
    pid_t pid = getppid();
    for (int generation = 0; generation < 4 && pid > 1; ++generation) {
        const ProcessFacts facts = facts_of(pid);
        if (std::find(kNames.begin(), kNames.end(), std::string_view(facts.name.data())) != kNames.end()) return pid;
        pid = facts.parent;
    }
    return 0;
}

bool ends_within(pid_t pid, unsigned long long start, int milliseconds) {
    constexpr int kPauseMs = 50;
    for (int waited = 0;; waited += kPauseMs) {
        const ProcessFacts facts = facts_of(pid);
        if (!facts.alive || facts.start != start) return true;
        if (waited >= milliseconds) return false;
        const timespec pause{0, kPauseMs * 1000000L};
        nanosleep(&pause, nullptr);
    }
}

void say(const std::string& message) {
    const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
    (void)written;
}

}  // namespace

EndGuard::EndGuard(double seconds, std::string message, int code)
    : thread_([this, seconds, code, text = std::move(message)] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return over_; })) return;
          if (!text.empty()) say("lockstep: " + text + "\n");
          end_launcher_soon();
          _exit(code);
      }) {}

EndGuard::~EndGuard() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    ended_.notify_all();
    thread_.join();
}

void end_launcher_soon() {
    const pid_t pid = launcher();
    if (pid == 0) return;
    const unsigned long long start = facts_of(pid).start;
    if (fork() != 0) return;
    setsid();  // the launcher ends its ranks by process group
    // The pipes of this rank are the launcher's to wait for: they must not stay open here.
    if (syscall(SYS_close_range, 0U, ~0U, 0U) != 0) {
        for (int fd = 0; fd < 1024; ++fd) ::close(fd);
    }
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) std::signal(signal, SIG_IGN);
    if (!ends_within(pid, start, kGraceMs)) kill(pid, SIGKILL);  // at TERM mpirun 4.1 would crash
    _exit(0);
}

}  // namespace lockstep

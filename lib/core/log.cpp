#include "core/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

namespace lockstep {
namespace {

// The one mutable global of the library: where lines go is a property of the process, and threading it through every
// call that may warn would hide what those calls compute. It never reaches a number.
std::atomic<LogLevel> level_of_process{LogLevel::kNormal};
std::atomic<bool> process_prints{true};

void write_line(std::string_view prefix, std::string_view text) {
    std::string line;
    line.reserve(prefix.size() + text.size() + 1);
    line.append(prefix).append(text).push_back('\n');
    std::string_view rest = line;
    while (!rest.empty()) {
        const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
        if (written > 0) {
            rest.remove_prefix(static_cast<size_t>(written));
        } else if (errno != EINTR) {
            return;  // stderr is closed or full: there is nobody left to tell
        }
    }
}

}  // namespace

void set_log(LogLevel level, bool prints) {
    level_of_process = level;
    process_prints = prints;
}

LogLevel log_level() {
    return level_of_process;
}

void log_line(std::string_view text) {
    if (process_prints && log_level() != LogLevel::kQuiet) write_line("", text);
}

void log_verbose(std::string_view text) {
    if (process_prints && log_level() == LogLevel::kVerbose) write_line("", text);
}

void warn_line(std::string_view text) {
    if (process_prints) write_line("lockstep: warning: ", text);
}

}  // namespace lockstep

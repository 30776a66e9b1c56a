#include "core/log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "core/shown_text.hpp"

namespace lockstep {
namespace {

// The one mutable global of the library: where lines go is a property of the process, and threading it through every
// call that may warn would hide what those calls compute. It never reaches a number.
std::atomic<LogLevel> level_of_process{LogLevel::kNormal};
std::atomic<bool> process_prints{true};
std::atomic<int> rank_log{-1};  // descriptor of the file of this rank

void write_line(int descriptor, std::string_view prefix, std::string_view text) {
    std::string line;
    line.reserve(prefix.size() + text.size() + 1);
    line.append(prefix).append(shown_text(text)).push_back('\n');
    std::string_view rest = line;
    while (!rest.empty()) {
        const ssize_t written = ::write(descriptor, rest.data(), rest.size());
        if (written > 0) {
            rest.remove_prefix(static_cast<size_t>(written));
        } else if (errno != EINTR) {
            return;  // closed or full: there is nobody left to tell
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

void open_rank_log(const std::string& folder, int rank) {
    const std::string path = fmt::format("{}/rank-{:05}.log", folder, rank);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    const int descriptor = error ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) {
        fail(ErrorKind::kRuntime, "log.dir: {} cannot be written: {}", path,
             error ? error.message() : std::strerror(errno));
    }
    const int before = rank_log.exchange(descriptor);
    if (before >= 0) ::close(before);
}

void log_to_file(std::string_view text) {
    if (rank_log < 0) return;
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    write_line(rank_log, fmt::format("{:%Y-%m-%dT%H:%M:%SZ} ", fmt::gmtime(now)), text);
}

void log_line(std::string_view text) {
    log_to_file(text);
    if (process_prints && log_level() != LogLevel::kQuiet) write_line(STDERR_FILENO, "", text);
}

void log_verbose(std::string_view text) {
    log_to_file(text);
    if (process_prints && log_level() == LogLevel::kVerbose) write_line(STDERR_FILENO, "", text);
}

void warn_line(std::string_view text) {
    log_to_file(std::string("warning: ").append(text));
    if (process_prints) write_line(STDERR_FILENO, "lockstep: warning: ", text);
}

}  // namespace lockstep

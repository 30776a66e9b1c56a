// Lines for people, on stderr, from rank 0 alone unless said otherwise. One write(2) a line, so that the lines of two
// processes never mix.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

enum class LogLevel { kQuiet, kNormal, kVerbose };

/// Set once by the executable: the level, and whether this process (rank 0) prints at all.
void set_log(LogLevel level, bool prints);
LogLevel log_level();

/// From now on every line of this process, whether it prints or not, also goes to `folder`/rank-00003.log, with the
/// time before it. Creates the folder. Throws kRuntime, naming the file, where it cannot be written.
void open_rank_log(const std::string& folder, int rank);
/// To that file alone, if there is one: errors, which reach stderr another way.
void log_to_file(std::string_view text);

void log_line(std::string_view text);     // kNormal and up
void log_verbose(std::string_view text);  // kVerbose only
void warn_line(std::string_view text);    // always where this process prints; "lockstep: warning: …"

template <class... Args>
void inform(fmt::format_string<Args...> f, Args&&... args) {
    log_line(fmt::format(f, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> f, Args&&... args) {
    warn_line(fmt::format(f, std::forward<Args>(args)...));
}

}  // namespace lockstep

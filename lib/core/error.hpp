// The one error type of Lockstep. Its kind alone decides the exit code of the executable (CLI exit codes), so a
// library function says what went wrong and never how the process ends.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

enum class ErrorKind {
    kRuntime,    // a failed write, a silent peer: exit 1
    kUsage,      // command line, config, an existing run, unequal start: exit 2
    kData,       // a damaged or missing input file, a damaged checkpoint: exit 3
    kMismatch,   // verification or replica check found a difference: exit 4
    kNonFinite,  // non-finite loss or gradient: exit 5
    kStopped,    // checkpointed and stopped on request: exit 75
};

/// The exit code of the executable for an error of this kind.
int exit_code(ErrorKind kind);

/// what() is one clear line (or one line per fault): what, where, the values, what to do. Rank and host are added at
/// the top.
class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const { return kind_; }

  private:
    ErrorKind kind_;
};

/// Throws Error(kind, formatted message).
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep

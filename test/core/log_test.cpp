#include "core/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

// What `action` writes to stderr, with the process's log set so; the default is restored.
template <class Action>
std::string written(LogLevel level, bool prints, const Action& action) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const int stderr_before = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    set_log(level, prints);
    action();
    set_log(LogLevel::kNormal, true);
    ::dup2(stderr_before, STDERR_FILENO);
    ::close(stderr_before);
    ::close(ends[1]);
    std::string text(4096, '\0');
    const ssize_t count = ::read(ends[0], text.data(), text.size());
    ::close(ends[0]);
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
}

void say_all() {
    inform("step {}", 3);
    log_verbose("detail");
    warn("{} ranks are idle", 2);
}

TEST_CASE("the level decides which lines are written, and a warning always is", "[log]") {
    CHECK(written(LogLevel::kNormal, true, say_all) == "step 3\nlockstep: warning: 2 ranks are idle\n");
    CHECK(written(LogLevel::kVerbose, true, say_all) == "step 3\ndetail\nlockstep: warning: 2 ranks are idle\n");
    CHECK(written(LogLevel::kQuiet, true, say_all) == "lockstep: warning: 2 ranks are idle\n");
}

TEST_CASE("a process that does not print writes nothing", "[log]") {
    CHECK(written(LogLevel::kVerbose, false, say_all).empty());
}

}  // namespace
}  // namespace lockstep

// Which lines reach stderr, and that a rank's own log has all of them.
#include "core/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/shown_text.hpp"

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

TEST_CASE("what a name would tell a terminal is shown, not obeyed", "[log]") {
    CHECK(written(LogLevel::kNormal, true, [] {
              warn("{}: no such file",
                   "a\x1b[2J\tb\x7f\xc2\x9b"
                   "31m");
          }) == "lockstep: warning: a\\x1b[2J\\x09b\\x7f\\x9b31m: no such file\n");
}

TEST_CASE("letters of every script stay as they are, line ends where they are wanted", "[log]") {
    const std::string text =
        "Gr\xc3\xb6\xc3\x9f"
        "e \xe2\x82\xac \xc2\xb5 one\ntwo";
    CHECK(shown_text(text) == text);
    CHECK(shown_text("one\ntwo", LineEnds::kEscaped) == "one\\x0atwo");
    CHECK(shown_text(std::string_view("\0\xc2", 2)) == "\\x00\xc2");
}

TEST_CASE("a process that does not print writes nothing", "[log]") {
    CHECK(written(LogLevel::kVerbose, false, say_all).empty());
}

TEST_CASE("a rank's log has every line of its process, also of one that does not print", "[log]") {
    char folder[] = "/tmp/lockstep-log-XXXXXX";
    REQUIRE(::mkdtemp(folder) != nullptr);
    const std::string logs = std::string(folder) + "/a/b";
    open_rank_log(logs, 3);
    CHECK(written(LogLevel::kQuiet, false, say_all).empty());
    log_to_file("an error");
    std::ifstream in(logs + "/rank-00003.log");
    std::string text;
    for (std::string line; std::getline(in, line);) text += line.substr(line.find(' ') + 1) + "\n";
    CHECK(text == "step 3\ndetail\nwarning: 2 ranks are idle\nan error\n");
    std::filesystem::remove_all(folder);
}

TEST_CASE("a log folder that cannot be made is refused by name", "[log]") {
    CHECK_THROWS_WITH(open_rank_log("/dev/null/logs", 0),
                      Catch::Contains("/dev/null/logs/rank-00000.log cannot be written"));
}

}  // namespace
}  // namespace lockstep

// LineFile: whole lines or none.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "io/files.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("lines are in the file as soon as they are appended") {
    const TempFolder folder;
    LineFile file(folder / "f", 0);
    CHECK(file.size() == 0);
    file.append("one");
    CHECK(text_of(read_file(folder / "f")) == "one\n");
    file.append("");
    file.append("two");
    CHECK(text_of(read_file(folder / "f")) == "one\n\ntwo\n");
    CHECK(file.size() == 9);
}

TEST_CASE("opening at a length cuts off what was written after it and goes on there") {
    const TempFolder folder;
    const std::string path = folder.write("f", "one\ntwo\nthree\n");
    LineFile file(path, 8);
    CHECK(text_of(read_file(path)) == "one\ntwo\n");
    file.append("3");
    CHECK(text_of(read_file(path)) == "one\ntwo\n3\n");
    CHECK(file.size() == 10);
}

TEST_CASE("a file that is shorter than what was written before is damaged") {
    const TempFolder folder;
    const std::string path = folder.write("f", "one\n");
    const auto error = caught([&] { LineFile(path, 8); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->message == path + " holds 4 bytes where 8 were written before: it was cut off; restore it");
    CHECK(text_of(read_file(path)) == "one\n");
}

TEST_CASE("a full disk is a run-time error that names the file") {
    LineFile file("/dev/full", 0);
    const auto error = caught([&] { file.append("line"); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
    CHECK(error->says("/dev/full"));
    CHECK(error->says("No space left on device"));
    CHECK(file.size() == 0);
}

TEST_CASE("a line that fits only in part is taken back") {
    const TempFolder folder;
    LineFile file(folder / "f", 0);
    file.append("fits");
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit now{8, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
    const auto error = caught([&] { file.append("does not fit"); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
    CHECK(text_of(read_file(folder / "f")) == "fits\n");
    file.append("again");
    CHECK(text_of(read_file(folder / "f")) == "fits\nagain\n");
}

TEST_CASE("a line file in a folder that is absent is a run-time error") {
    const TempFolder folder;
    const auto error = caught([&] { LineFile(folder / "none/f", 0); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
}

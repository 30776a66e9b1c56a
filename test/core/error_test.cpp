// The one error type: its kind decides the exit code.
#include "core/error.hpp"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("an error's kind alone decides the exit code", "[error]") {
    CHECK(exit_code(ErrorKind::kRuntime) == 1);
    CHECK(exit_code(ErrorKind::kUsage) == 2);
    CHECK(exit_code(ErrorKind::kData) == 3);
    CHECK(exit_code(ErrorKind::kMismatch) == 4);
    CHECK(exit_code(ErrorKind::kNonFinite) == 5);
    CHECK(exit_code(ErrorKind::kStopped) == 75);
}

TEST_CASE("fail throws the formatted message with its kind", "[error]") {
    try {
        fail(ErrorKind::kData, "{}: label {} is not below {}", "labels.gz", 11, 10);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kData);
        CHECK(std::string(error.what()) == "labels.gz: label 11 is not below 10");
        return;
    }
    FAIL("nothing was thrown");
}

}  // namespace
}  // namespace lockstep

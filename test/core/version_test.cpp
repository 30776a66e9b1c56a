// The version that the build names, and the name of the arithmetic.
#include "core/version.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

TEST_CASE("the version is the project's, and the fingerprint names the arithmetic", "[version]") {
    CHECK(std::string(version()) == LOCKSTEP_PROJECT_VERSION);
    CHECK(std::string(kNumericFingerprint) == std::string("arithmetic ") + kArithmetic);
}

}  // namespace
}  // namespace lockstep

// How much memory some work takes beyond what the process has: for tests of data that stay on the disk.
#pragma once

#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <string>

namespace lockstep::test {

inline constexpr int64_t kMegabyte = 1 << 20;

inline int64_t status_bytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        int64_t kilobytes = 0;
        if (word == name + ":" && status >> kilobytes) return kilobytes * 1024;
    }
    FAIL("/proc/self/status has no " << name);
    return 0;
}

/// How far the peak goes beyond what is resident now; nothing where the system does not set the peak back.
template <class Body>
int64_t growth(Body&& body) {
    ::malloc_trim(0);  // else what the test itself has used and freed would be there to be used again
    std::ofstream("/proc/self/clear_refs") << "5";
    const int64_t before = status_bytes("VmRSS");
    REQUIRE(status_bytes("VmHWM") < before + kMegabyte);
    body();
    return status_bytes("VmHWM") - before;
}

}  // namespace lockstep::test

// The main() of tests on the emulation. Catch2 would take every memory fault for the end of the test; the emulation
// makes those of kernels errors of the device.
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#include <catch2/catch.hpp>

// The runner of the tests that need a GPU: where there is none that can be used, it says why and is skipped (exit 77).
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <iostream>

#include "core/error.hpp"
#include "cuda/backend/device_check.hpp"

int main(int argc, char* argv[]) {
    try {
        lockstep::open_device(0);
    } catch (const lockstep::Error& error) {
        std::cerr << "skipped: " << error.what() << '\n';
        return 77;
    }
    return Catch::Session().run(argc, argv);
}

// The main() of every Catch2 executable that runs in one process.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

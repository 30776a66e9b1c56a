// Counts what this executable allocates with new. A file of its own: compilers must not see both sides.
#pragma once

#include <cstdint>

namespace lockstep::test {

int64_t allocations();

}  // namespace lockstep::test

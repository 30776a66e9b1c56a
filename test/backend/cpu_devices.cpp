// The CPU backend for the tests of the operations: each instruction set of this machine with 1 to 3 threads. "auto" is
// no instruction set of its own: it is the first of these.
#include "backend/cpu/cpu_backend.hpp"
#include "kernel_fixture.hpp"

namespace lockstep::test {

std::vector<NamedBackend> every_backend(int most) {
    std::vector<NamedBackend> made;
    for (const Isa isa : available_isas()) {
        for (int threads = 1; threads <= most; ++threads) {
            made.push_back({std::string(isa_name(isa)) + " x " + std::to_string(threads),
                            make_cpu_backend({isa, threads}), threads == 2 ? Placement::kAligned : Placement::kOdd});
        }
    }
    return made;
}

}  // namespace lockstep::test

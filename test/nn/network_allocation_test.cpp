#include <catch2/catch.hpp>

#include "backend/cpu/cpu_backend.hpp"
#include "nn/network_fixture.hpp"
#include "support/allocation_counter.hpp"

namespace lockstep {

TEST_CASE("once each pattern of rows has been seen, steps and evaluations allocate nothing") {
    const std::vector<int64_t> full{3, 2, 3, 2, 3, 2, 3, 2}, last{1, 1, 0, 1, 1, 0, 1, 1};
    for (const NamedSpec& named : small_networks()) {
        for (const int threads : {1, 3}) {
            const auto backend = make_cpu_backend({Isa::kAuto, threads});
            Network network(named.spec, *backend);
            const std::vector<float> weights = some_weights(network.parameters());
            const Samples samples = random_samples(named.spec.input, named.spec.classes, 20, 1);
            const int64_t pixels = named.spec.input.elements();
            const Partials partials(*backend, 1, network.parameters().flat_elements());
            const auto run = [&] {
                network.train_step(input_of(samples, pixels, 0, 20), 8, {0, 8}, full, weights.data(),
                                   partials.pointers(), [](int64_t) {});
                network.train_step(input_of(samples, pixels, 0, 6), 8, {0, 8}, last, weights.data(),
                                   partials.pointers(), [](int64_t) {});
                network.logits(samples.pixels.data(), 20, weights.data());
                network.logits(samples.pixels.data(), 7, weights.data());
            };
            run();
            const test::AllocationCounter counter;
            for (int step = 0; step < 3; ++step) run();
            const int64_t count = counter.count();
            CAPTURE(named.name, threads);
            CHECK(count == 0);
        }
    }
}

}  // namespace lockstep

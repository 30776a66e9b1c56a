// Steps and evaluations allocate nothing once their patterns of rows are known, of which so many are kept.
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

TEST_CASE("64 patterns of rows are kept, a 65th takes the place of the oldest, and no bit depends on it") {
    const NamedSpec named = small_networks().front();
    const auto backend = make_cpu_backend({Isa::kAuto, 1});
    Network network(named.spec, *backend);
    const std::vector<float> weights = some_weights(network.parameters());
    const Samples samples = random_samples(named.spec.input, named.spec.classes, 20, 1);
    const Partials partials(*backend, 1, network.parameters().flat_elements());
    const auto sizes = [](int pattern) {  // as many as there are rows, and as many again
        return std::vector<int64_t>{1 + pattern % 9, 1 + pattern / 9};
    };
    const auto step = [&](Network& with, int pattern) {
        const std::vector<int64_t> shards = sizes(pattern);
        with.train_step(input_of(samples, named.spec.input.elements(), 0, static_cast<int>(shards[0] + shards[1])), 2,
                        {0, 2}, shards, weights.data(), partials.pointers(), [](int64_t) {});
    };
    const auto allocations = [&](int patterns) {
        const test::AllocationCounter counter;
        for (int pattern = 0; pattern < patterns; ++pattern) step(network, pattern);
        return counter.count() - patterns;  // without those of the sizes themselves
    };
    allocations(64);
    CHECK(allocations(64) == 0);
    allocations(65);
    CHECK(allocations(65) > 0);
    for (const int pattern : {64, 3, 0, 63}) {
        Network fresh(named.spec, *backend);
        const auto bytes = static_cast<std::size_t>(kLead + network.parameters().flat_elements());
        const float* sums = partials.pointers()[0];
        step(fresh, pattern);
        const std::vector<float> expected(sums, sums + bytes);
        step(network, pattern);
        CHECK(same_bytes(expected, std::vector<float>(sums, sums + bytes)));
    }
}

}  // namespace lockstep

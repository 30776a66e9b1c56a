// A training step of a plain network: the scalar step's bytes on any instruction set, threads and ranks; gradients
// against central differences; and the order in which they are announced.
#include "nn/network.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "nn/double_network.hpp"
#include "nn/network_fixture.hpp"

namespace lockstep {
namespace {

/// Shard sizes: `rows` cut into `shards` as evenly as floor allows; and two that are uneven with empty shards.
std::vector<int64_t> even(int rows, int shards) {
    std::vector<int64_t> sizes;
    for (int v = 0; v < shards; ++v) sizes.push_back((v + 1) * rows / shards - v * rows / shards);
    return sizes;
}
std::vector<std::vector<int64_t>> patterns() {
    return {even(20, 1),    even(20, 5), even(20, 8), even(20, 12), even(7, 12), {0, 9, 1, 0, 0, 3, 5, 0},
            {0, 0, 0, 2, 0}};
}

int rows_of(const std::vector<int64_t>& sizes) {
    return static_cast<int>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
}

}  // namespace

TEST_CASE("a step equals the plain scalar one on every instruction set and number of threads") {
    for (const NamedSpec& named : small_networks()) {
        const Model model = build_model(named.spec);
        const std::vector<float> weights = some_weights(model.parameters);
        for (const Isa isa : available_isas()) {
            for (const int threads : {1, 2, 3}) {
                const auto backend = make_cpu_backend({isa, threads});
                Network network(named.spec, *backend);
                for (const std::vector<int64_t>& sizes : patterns()) {
                    CAPTURE(named.name, isa_name(isa), threads, sizes);
                    const Samples samples = random_samples(named.spec.input, named.spec.classes, rows_of(sizes), 1);
                    const StepSums expected = reference_step(model, samples, sizes, weights);
                    REQUIRE(same_bytes(world_step(network, *backend, samples, sizes, 1, weights), expected));
                    // The same plan again: nothing of the first step is left in it.
                    REQUIRE(same_bytes(world_step(network, *backend, samples, sizes, 1, weights), expected));
                }
            }
        }
    }
}

TEST_CASE("however the shards are dealt to ranks, a step has the bits of one rank") {
    for (const NamedSpec& named : small_networks()) {
        const Model model = build_model(named.spec);
        const std::vector<float> weights = some_weights(model.parameters);
        for (const int threads : {1, 2, 3}) {
            const auto backend = make_cpu_backend({Isa::kAuto, threads});
            Network network(named.spec, *backend);
            for (const std::vector<int64_t>& sizes : patterns()) {
                const Samples samples = random_samples(named.spec.input, named.spec.classes, rows_of(sizes), 2);
                const StepSums one = world_step(network, *backend, samples, sizes, 1, weights);
                for (const int world : {2, 3, 4, 5, 7, 8}) {
                    CAPTURE(named.name, threads, sizes, world);
                    REQUIRE(same_bytes(world_step(network, *backend, samples, sizes, world, weights), one));
                }
            }
        }
    }
}

TEST_CASE("shards summed left to right, and dropout keyed by the local row, give other bits") {
    const std::vector<int64_t> sizes = even(20, 8);
    for (const NamedSpec& named : small_networks()) {
        CAPTURE(named.name);
        const Model model = build_model(named.spec);
        const std::vector<float> weights = some_weights(model.parameters);
        const Samples samples = random_samples(named.spec.input, named.spec.classes, 20, 3);
        const auto backend = make_cpu_backend({});
        Network network(named.spec, *backend);
        const StepSums step = world_step(network, *backend, samples, sizes, 2, weights);
        CHECK_FALSE(same_bytes(step, reference_step(model, samples, sizes, weights, Twin::kLeftToRight)));
        const StepSums by_row = reference_step(model, samples, sizes, weights, Twin::kDropoutByLocalRow);
        CHECK(same_bytes(step, by_row) == (named.spec.dropout == 0));
    }
}

TEST_CASE("gradients agree with central differences in double, in every tensor") {
    for (const NamedSpec& named : small_networks()) {
        const Model model = build_model(named.spec);
        const std::vector<float> weights = some_weights(model.parameters);
        const std::vector<int64_t> sizes = even(6, 4);
        const Samples samples = random_samples(named.spec.input, named.spec.classes, 6, 4);
        const auto backend = make_cpu_backend({});
        Network network(named.spec, *backend);
        const StepSums step = world_step(network, *backend, samples, sizes, 1, weights);
        const std::vector<double> at(weights.begin(), weights.end());
        int compared = 0;
        int kinks = 0;
        CHECK(std::abs(double_loss(model, samples, sizes, at) / step.loss - 1) < 1e-5);
        for (const Parameter& parameter : model.parameters.all()) {
            for (int64_t e = 0; e < parameter.count; e += std::max<int64_t>(1, parameter.count / 23)) {
                CAPTURE(named.name, parameter.name, e);
                const auto i = static_cast<std::size_t>(parameter.offset + e);
                constexpr double kStep = 1e-6;  // error of the difference: about 1e-9, of fp32 sums: about 1e-6
                const auto slope_at = [&](double center) {
                    std::vector<double> moved = at;
                    moved[i] = center + kStep;
                    const double up = double_loss(model, samples, sizes, moved);
                    moved[i] = center - kStep;
                    return (up - double_loss(model, samples, sizes, moved)) / (2 * kStep);
                };
                const auto agrees = [&](double slope) {
                    return std::abs(slope - step.gradient[i]) < 2e-5 * (1 + std::abs(slope));
                };
                ++compared;
                if (agrees(slope_at(at[i]))) continue;
                // Where two taps of a pooling, or a relu and 0, are equal to fp32 rounding, fp32 may stand on one side
                // of the kink and fp64 on the other: then the slope just beside is the one.
                ++kinks;
                REQUIRE((agrees(slope_at(at[i] + 1e-5)) || agrees(slope_at(at[i] - 1e-5)) ||
                         agrees(slope_at(at[i] + 1e-4)) || agrees(slope_at(at[i] - 1e-4))));
            }
        }
        CHECK(kinks * 50 <= compared);
    }
}

TEST_CASE("gradients are announced last layer first, once final, and the loss before the first") {
    for (const NamedSpec& named : small_networks()) {
        CAPTURE(named.name);
        const auto backend = make_cpu_backend({Isa::kAuto, 2});
        Network network(named.spec, *backend);
        const ParameterTable& table = network.parameters();
        const std::vector<float> weights = some_weights(table);
        const std::vector<int64_t> sizes = even(20, 8);
        const ShardRange range{1, 7};  // three roots: [1,2), [2,4), [4,6), [6,7) …
        const int first_row = static_cast<int>(sizes[0]);
        const int rows = static_cast<int>(20 - sizes[0] - sizes[7]);
        const Samples samples = random_samples(named.spec.input, named.spec.classes, 20, 5);
        const Partials partials(*backend, maximal_nodes(8, range, sizes).size(), table.flat_elements());
        REQUIRE(partials.pointers().size() > 1);
        const auto snapshot = [&](int64_t first) {
            std::vector<float> all;
            for (const float* partial : partials.pointers()) {
                all.push_back(partial[kLeadLoss]);
                all.insert(all.end(), partial + kLead + first, partial + kLead + table.flat_elements());
            }
            return all;
        };
        std::vector<int64_t> firsts;
        std::vector<std::vector<float>> seen;
        network.train_step(input_of(samples, named.spec.input.elements(), first_row, rows), 8, range, sizes,
                           weights.data(), partials.pointers(), [&](int64_t first) {
                               firsts.push_back(first);
                               seen.push_back(snapshot(first));
                           });
        CHECK(firsts.back() == 0);
        CHECK(std::is_sorted(firsts.rbegin(), firsts.rend()));
        CHECK(std::adjacent_find(firsts.begin(), firsts.end()) == firsts.end());
        for (std::size_t i = 0; i < firsts.size(); ++i) CHECK(same_bytes(seen[i], snapshot(firsts[i])));
    }
}

TEST_CASE("a rank without samples announces everything and writes nothing") {
    const NamedSpec named = small_networks()[3];
    const auto backend = make_cpu_backend({});
    Network network(named.spec, *backend);
    const std::vector<float> weights = some_weights(network.parameters());
    const Partials partials(*backend, 1, network.parameters().flat_elements());
    const std::vector<int64_t> sizes{3, 0, 0, 4};
    std::vector<int64_t> firsts;
    network.train_step({}, 4, {1, 3}, sizes, weights.data(), partials.pointers(),
                       [&](int64_t first) { firsts.push_back(first); });
    CHECK(firsts == std::vector<int64_t>{0});
    CHECK(partials.pointers()[0][kLeadLoss] == 0.0F);
}

TEST_CASE("logits have the plain scalar bits, without dropout, for any number of rows at a time") {
    for (const NamedSpec& named : small_networks()) {
        const Model model = build_model(named.spec);
        const std::vector<float> weights = some_weights(model.parameters);
        const Samples samples = random_samples(named.spec.input, named.spec.classes, 41, 6);
        const std::vector<float> expected = reference_logits(model, samples, weights);
        const int64_t pixels = named.spec.input.elements();
        for (const Isa isa : available_isas()) {
            for (const int threads : {1, 3}) {
                const auto backend = make_cpu_backend({isa, threads});
                Network network(named.spec, *backend);
                for (const int piece : {41, 17, 1}) {
                    CAPTURE(named.name, isa_name(isa), threads, piece);
                    std::vector<float> all;
                    for (int first = 0; first < 41; first += piece) {
                        const int rows = std::min(piece, 41 - first);
                        const float* const z =
                            network.logits(samples.pixels.data() + first * pixels, rows, weights.data());
                        all.insert(all.end(), z, z + rows * network.classes());
                    }
                    REQUIRE(same_bytes(all, expected));
                }
            }
        }
    }
}

TEST_CASE("evaluation between steps changes no step") {
    const NamedSpec named = small_networks()[4];
    const Model model = build_model(named.spec);
    const std::vector<float> weights = some_weights(model.parameters);
    const std::vector<int64_t> sizes = even(20, 8);
    const Samples samples = random_samples(named.spec.input, named.spec.classes, 20, 7);
    const auto backend = make_cpu_backend({Isa::kAuto, 2});
    Network network(named.spec, *backend);
    const StepSums before = world_step(network, *backend, samples, sizes, 1, weights);
    network.logits(samples.pixels.data(), 20, weights.data());
    CHECK(same_bytes(world_step(network, *backend, samples, sizes, 1, weights), before));
}

TEST_CASE("a loss that overflows reaches the lead as it is") {
    const NamedSpec named = small_networks()[2];
    const auto backend = make_cpu_backend({});
    Network network(named.spec, *backend);
    const std::vector<float> weights = some_weights(network.parameters());
    Samples samples = random_samples(named.spec.input, named.spec.classes, 4, 8);
    samples.pixels[3] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<int64_t> sizes{2, 2};
    const StepSums step = world_step(network, *backend, samples, sizes, 1, weights);
    CHECK_FALSE(std::isfinite(step.loss));
}

TEST_CASE("sums are surely finite where all that they are made of is small, and not where one value is large or none") {
    const NamedSpec mlp = small_networks()[0];
    const std::vector<int64_t> sizes{1, 2, 1};
    for (const Isa isa : available_isas()) {
        const auto backend = make_cpu_backend({isa, 2});
        for (const int64_t most_rows : {0, 2}) {
            Network network(mlp.spec, *backend, most_rows);
            const std::vector<float> weights = some_weights(network.parameters());
            const Samples small = random_samples(mlp.spec.input, mlp.spec.classes, 4, 9);
            const auto surely_finite = [&](const Samples& samples, const std::vector<float>& w) {
                world_step(network, *backend, samples, sizes, 1, w);
                return network.sums_surely_finite();
            };
            CAPTURE(isa_name(isa), most_rows);
            REQUIRE(surely_finite(small, weights));
            for (const float value : {0x1p41F, 3e38F, std::numeric_limits<float>::quiet_NaN()}) {
                CAPTURE(value);
                Samples large = small;  // in the first pass alone, where there are several
                large.pixels[3] = value;
                CHECK_FALSE(surely_finite(large, weights));
                std::vector<float> heavy = weights;  // of the last layer: what comes back from it is large
                heavy[heavy.size() - 40] = value;
                CHECK_FALSE(surely_finite(small, heavy));
                CHECK(surely_finite(small, weights));
            }
        }
    }
}

TEST_CASE("whether sums are surely finite is left open where it costs as much as reading them") {
    const auto backend = make_cpu_backend({});
    for (const auto& [named, rows] : {std::pair{small_networks()[0], 20}, {small_networks()[3], 2}}) {
        Network network(named.spec, *backend);
        const Samples samples = random_samples(named.spec.input, named.spec.classes, rows, 9);
        world_step(network, *backend, samples, even(rows, 2), 1, some_weights(network.parameters()));
        CAPTURE(named.name, rows);
        CHECK_FALSE(network.sums_surely_finite());
    }
}

TEST_CASE("rows that do not match the shards are refused") {
    const NamedSpec named = small_networks()[0];
    const auto backend = make_cpu_backend({});
    Network network(named.spec, *backend);
    const std::vector<float> weights = some_weights(network.parameters());
    const Samples samples = random_samples(named.spec.input, named.spec.classes, 4, 9);
    const Partials partials(*backend, 1, network.parameters().flat_elements());
    const std::vector<int64_t> sizes{2, 2};
    CHECK_THROWS_AS(network.train_step(input_of(samples, named.spec.input.elements(), 0, 3), 2, {0, 2}, sizes,
                                       weights.data(), partials.pointers(), [](int64_t) {}),
                    Error);
}

TEST_CASE("the summary has one line a layer: name, shape, parameters") {
    ModelSpec spec;
    spec.name = "lenet";
    spec.input = {28, 28, 1};
    const auto backend = make_cpu_backend({});
    const Network network(spec, *backend);
    const std::string summary = network.summary();
    CHECK(std::count(summary.begin(), summary.end(), '\n') == 9);
    CHECK(summary.find("conv1      28x28x32     832\n") == 0);
    CHECK(summary.find("fc1        1x1x512      1606144\n") != std::string::npos);
    CHECK(network.classes() == 10);
}

}  // namespace lockstep

// Networks with branches, batch norm and concatenations: the plain scalar step's bytes at any number of ranks, threads
// and passes, gradients against central differences, and no allocation.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "nn/branched_models.hpp"
#include "nn/double_network.hpp"
#include "support/allocation_counter.hpp"

namespace lockstep {
namespace {

const std::vector<std::vector<int64_t>> kPatterns{{3, 2, 3, 2, 3, 2, 3, 2}, {2, 3, 0, 1, 4}, {0, 5, 1, 0, 0, 3, 2, 0}};

int rows_of(const std::vector<int64_t>& sizes) {
    return static_cast<int>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
}

Samples samples_of(const NamedModel& named, const std::vector<int64_t>& sizes, unsigned seed) {
    return random_samples(named.spec.input, named.spec.classes, rows_of(sizes), seed);
}

bool has_norms(const Model& model) {
    return model.parameters.stored_elements() > model.parameters.flat_elements();
}

}  // namespace

TEST_CASE("a network with branches equals the plain scalar one, running values too") {
    for (const NamedModel& named : branched_models()) {
        const std::vector<float> weights = some_weights(named.model.parameters);
        for (const std::vector<int64_t>& sizes : kPatterns) {
            const Samples samples = samples_of(named, sizes, 1);
            const StepSums expected = reference_step(named.model, samples, sizes, weights);
            const std::vector<float> running = reference_running(named.model, samples, sizes, weights);
            CHECK(same_bytes(running, weights) == !has_norms(named.model));
            for (const int threads : {1, 3}) {
                CAPTURE(named.name, sizes, threads);
                const WorldResult result = threaded_step(named.model, samples, sizes, weights, {.threads = threads});
                CHECK(same_bytes(result.sums, expected));
                CHECK(same_bytes(result.weights, running));
            }
        }
    }
}

TEST_CASE("batch norm in both scopes gives the same bits on 1, 2, 3, 4 and 8 ranks") {
    for (const NamedModel& named : branched_models()) {
        const std::vector<float> weights = some_weights(named.model.parameters);
        for (const std::vector<int64_t>& sizes : kPatterns) {
            const Samples samples = samples_of(named, sizes, 2);
            const WorldResult one = threaded_step(named.model, samples, sizes, weights, {});
            for (const int world : {2, 3, 4, 8}) {
                CAPTURE(named.name, sizes, world);
                const WorldResult result = threaded_step(named.model, samples, sizes, weights, {.world = world});
                CHECK(result.replicas_equal);
                CHECK(same_bytes(result.sums, one.sums));
                CHECK(same_bytes(result.weights, one.weights));
            }
        }
    }
}

TEST_CASE("rows taken in several passes leave the same sums and running values") {
    const std::vector<int64_t> sizes = kPatterns[0];
    for (const NamedModel& named : branched_models()) {
        const std::vector<float> weights = some_weights(named.model.parameters);
        const Samples samples = samples_of(named, sizes, 3);
        const WorldResult one = threaded_step(named.model, samples, sizes, weights, {});
        for (const WorldCast& cast : {WorldCast{.world = 1, .micro = 6}, WorldCast{.world = 3, .micro = 1}}) {
            CAPTURE(named.name, cast.world, cast.micro);
            if (named.name.find("global") != std::string::npos) {
                CHECK_THROWS_AS(threaded_step(named.model, samples, sizes, weights, cast), Error);
                continue;
            }
            const WorldResult result = threaded_step(named.model, samples, sizes, weights, cast);
            CHECK(same_bytes(result.sums, one.sums));
            CHECK(same_bytes(result.weights, one.weights));
        }
    }
}

TEST_CASE("twins: ascending readers, statistics of local shards, and another V give other bits") {
    const std::vector<int64_t> sizes{4, 4, 4, 4};
    const std::vector<int64_t> halves{8, 8};
    for (const NamedModel& named : branched_models()) {
        CAPTURE(named.name);
        const std::vector<float> weights = some_weights(named.model.parameters);
        const Samples samples = samples_of(named, sizes, 4);
        const WorldResult two = threaded_step(named.model, samples, sizes, weights, {.world = 2});
        const bool norms = has_norms(named.model);
        const bool global = named.name.find("global") != std::string::npos;
        const StepSums ascending = reference_step(named.model, samples, sizes, weights, Twin::kAscendingReaders);
        CHECK(same_bytes(two.sums, ascending) == (named.name != "joining"));
        CHECK_FALSE(same_bytes(two.sums, reference_step(named.model, samples, sizes, weights, Twin::kLeftToRight)));
        const std::vector<float> half = reference_running(named.model, samples, sizes, weights, Twin::kFirstShardsNorm);
        CHECK(same_bytes(two.weights, half) == !norms);
        // Without an exchange, running values are those of the rank's own shards, and with scope global so is all else.
        const WorldResult apart = threaded_step(named.model, samples, sizes, weights, {.world = 2, .exchange = false});
        CHECK(apart.replicas_equal == !norms);
        CHECK(same_bytes(apart.weights, two.weights) == !norms);
        CHECK(same_bytes(apart.sums, two.sums) == !global);
        // Of shards twice as large, scope shard has other statistics.
        if (!norms || global) continue;
        const WorldResult other = threaded_step(named.model, samples, halves, weights, {});
        CHECK(std::abs(other.sums.loss / two.sums.loss - 1) > 1e-5);  // rounding alone: 1e-7
    }
}

TEST_CASE("scope global hardly depends on how the batch is cut") {
    const NamedModel named = residual_model(true);
    const std::vector<float> weights = some_weights(named.model.parameters);
    const Samples samples = samples_of(named, {16}, 5);
    const WorldResult whole = threaded_step(named.model, samples, {16}, weights, {});
    const WorldResult cut = threaded_step(named.model, samples, {3, 1, 4, 1, 5, 2}, weights, {});
    CHECK(std::abs(whole.sums.loss / cut.sums.loss - 1) < 1e-5);
    const NamedModel shard = residual_model(false);
    const WorldResult one = threaded_step(shard.model, samples, {16}, weights, {});
    CHECK(same_bytes(one.sums, whole.sums));  // one shard is the whole batch
    CHECK(same_bytes(one.weights, whole.weights));
}

TEST_CASE("evaluation takes running values, whatever the pieces, and changes nothing") {
    for (const NamedModel& named : branched_models()) {
        CAPTURE(named.name);
        std::vector<float> weights = some_weights(named.model.parameters);
        for (int64_t e = named.model.parameters.flat_elements(); e < named.model.parameters.stored_elements(); ++e) {
            weights[static_cast<std::size_t>(e)] += 0.125F * static_cast<float>(e % 5);
        }
        const Samples samples = samples_of(named, {41}, 6);
        const std::vector<float> expected = reference_logits(named.model, samples, weights);
        const std::vector<float> before = weights;
        const auto backend = make_cpu_backend({Isa::kAuto, 2});
        Network network(named.model, *backend);
        const int64_t pixels = named.spec.input.elements();
        for (const int piece : {41, 17, 1}) {
            std::vector<float> all;
            for (int first = 0; first < 41; first += piece) {
                const int rows = std::min(piece, 41 - first);
                const float* const z = network.logits(samples.pixels.data() + first * pixels, rows, weights.data());
                all.insert(all.end(), z, z + rows * named.spec.classes);
            }
            CHECK(same_bytes(all, expected));
        }
        CHECK(same_bytes(weights, before));
    }
}

TEST_CASE("gradients through branches and batch norm agree with central differences in double") {
    const std::vector<int64_t> sizes{3, 4, 2};
    for (const NamedModel& named : branched_models()) {
        const std::vector<float> weights = some_weights(named.model.parameters);
        const Samples samples = samples_of(named, sizes, 7);
        const StepSums step = threaded_step(named.model, samples, sizes, weights, {}).sums;
        const std::vector<double> at(weights.begin(), weights.end());
        CHECK(std::abs(double_loss(named.model, samples, sizes, at) / static_cast<double>(step.loss) - 1) < 1e-5);
        int compared = 0;
        int kinks = 0;
        for (const Parameter& parameter : named.model.parameters.all()) {
            for (int64_t e = 0; e < parameter.count; e += std::max<int64_t>(1, parameter.count / 9)) {
                CAPTURE(named.name, parameter.name, e);
                const auto i = static_cast<std::size_t>(parameter.offset + e);
                const auto slope_at = [&](double center) {
                    constexpr double kStep = 1e-6;
                    std::vector<double> moved = at;
                    moved[i] = center + kStep;
                    const double up = double_loss(named.model, samples, sizes, moved);
                    moved[i] = center - kStep;
                    return (up - double_loss(named.model, samples, sizes, moved)) / (2 * kStep);
                };
                const auto agrees = [&](double slope) {
                    return std::abs(slope - static_cast<double>(step.gradient[i])) < 5e-5 * (1 + std::abs(slope));
                };
                ++compared;
                if (agrees(slope_at(at[i]))) continue;
                ++kinks;  // of a relu or a maximum, where fp32 and fp64 may stand on either side
                CHECK((agrees(slope_at(at[i] + 1e-5)) || agrees(slope_at(at[i] - 1e-5)) ||
                       agrees(slope_at(at[i] + 1e-4)) || agrees(slope_at(at[i] - 1e-4))));
            }
        }
        CHECK(kinks * 50 <= compared);
    }
}

TEST_CASE("a step through branches and batch norm allocates nothing") {
    const std::vector<int64_t> sizes = kPatterns[0];
    for (const NamedModel& named : branched_models()) {
        CAPTURE(named.name);
        const auto backend = make_cpu_backend({Isa::kAuto, 1});
        Network network(named.model, *backend);
        std::vector<float> weights = some_weights(named.model.parameters);
        const Samples samples = samples_of(named, sizes, 8);
        const Partials partials(*backend, 1, named.model.parameters.flat_elements());
        const auto run = [&] {
            network.train_step(input_of(samples, named.spec.input.elements(), 0, rows_of(sizes)), 8, {0, 8}, sizes,
                               weights.data(), partials.pointers(), [](int64_t) {});
            network.update_running(weights.data());
            network.logits(samples.pixels.data(), rows_of(sizes), weights.data());
        };
        run();
        const test::AllocationCounter counter;
        run();
        const int64_t count = counter.count();
        CHECK(count == 0);
    }
}

TEST_CASE("a layer that nothing reads, a lonely sum and inputs that do not fit are refused by name") {
    const auto refused = [](std::vector<int> inputs, int channels) {
        Model model;
        const auto add = [&](const char* name, LayerKind kind, std::vector<int> from, int width) {
            LayerSpec& layer = model.layers.emplace_back();
            layer.name = name;
            layer.kind = kind;
            layer.inputs = std::move(from);
            layer.in = layer.out = {2, 2, width};
        };
        add("a", LayerKind::kSigmoid, {-1}, 3);
        add("b", LayerKind::kSigmoid, {-1}, channels);
        add("c", LayerKind::kAdd, std::move(inputs), 3);
        try {
            link_layers(model);
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused({0, 1}, 3).empty());
    CHECK(refused({0, 0}, 3).find("layer b: nothing reads its output") != std::string::npos);
    CHECK(refused({0}, 3).find("layer") != std::string::npos);
    CHECK(refused({0, 1}, 4).find("layer c: its inputs are 2x2x3 and 2x2x4") != std::string::npos);
}

}  // namespace lockstep

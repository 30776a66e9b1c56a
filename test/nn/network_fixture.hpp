// Small networks, and a training step of any number of ranks in one process, for the tests of Network.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "core/thread_pool.hpp"
#include "nn/network.hpp"
#include "nn/reference_network.hpp"

namespace lockstep {

struct NamedSpec {
    const char* name;
    ModelSpec spec;
};

/// mlp [33, 17], with dropout, without hidden layers; lenet channels [3, 5] on 12x12 and 9x11, with dropout.
inline std::vector<NamedSpec> small_networks() {
    ModelSpec mlp;
    mlp.hidden = {33, 17};
    mlp.input = {5, 7, 2};
    mlp.classes = 10;
    ModelSpec mlp_dropout = mlp;
    mlp_dropout.dropout = 0.3;
    ModelSpec linear = mlp;
    linear.hidden = {};
    ModelSpec lenet = mlp;
    lenet.name = "lenet";
    lenet.channels = {3, 5};
    lenet.input = {12, 12, 1};
    ModelSpec lenet_odd = lenet;
    lenet_odd.input = {9, 11, 3};
    lenet_odd.dropout = 0.5;
    return {{"mlp", mlp},
            {"mlp dropout", mlp_dropout},
            {"linear", linear},
            {"lenet", lenet},
            {"lenet odd dropout", lenet_odd}};
}

/// Initial weights with biases that matter.
inline std::vector<float> some_weights(const ParameterTable& parameters) {
    ThreadPool pool(1);
    std::vector<float> flat(static_cast<std::size_t>(parameters.stored_elements()));
    parameters.initialise(5, flat, pool);
    for (const Parameter& parameter : parameters.all()) {
        if (parameter.is_weight()) continue;
        for (int64_t e = 0; e < parameter.count; ++e) {
            flat[static_cast<std::size_t>(parameter.offset + e)] += 0.01F * static_cast<float>(e % 7 - 3);
        }
    }
    return flat;
}

/// Partial sums of one rank, [lead | flat elements] each, in device memory.
class Partials {
  public:
    Partials(Backend& backend, std::size_t count, int64_t elements) {
        const auto bytes = static_cast<std::size_t>(kLead + elements) * sizeof(float);
        for (std::size_t i = 0; i < count; ++i) {
            buffers_.push_back(backend.allocate(bytes));
            pointers_.push_back(buffers_.back()->floats());
        }
    }
    std::span<float* const> pointers() const { return pointers_; }

  private:
    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::vector<float*> pointers_;
};

inline NetworkInput input_of(const Samples& samples, int64_t pixels_each, int first, int rows) {
    return {.epoch = samples.epoch,
            .rows = rows,
            .pixels = samples.pixels.data() + first * pixels_each,
            .labels = samples.labels.data() + first,
            .positions = samples.positions.data() + first};
}

/// One step of a world of `world` ranks, one after the other on `network`; their partial sums joined as a reducer
/// would.
inline StepSums world_step(Network& network, Backend& backend, const Samples& samples, std::span<const int64_t> sizes,
                           int world, const std::vector<float>& weights) {
    const auto shards = static_cast<int>(sizes.size());
    const int64_t elements = network.parameters().flat_elements();
    const int64_t pixels = static_cast<int64_t>(samples.pixels.size()) / samples.rows;
    std::vector<std::unique_ptr<Partials>> partials;
    std::vector<ShardRange> nodes;
    std::vector<float*> values;
    int first = 0;
    for (int rank = 0; rank < world; ++rank) {
        const ShardRange range = shards_of_rank(shards, rank, world);
        const std::vector<ShardRange> local = maximal_nodes(shards, range, sizes);
        int rows = 0;
        for (int v = range.begin; v < range.end; ++v) rows += static_cast<int>(sizes[static_cast<std::size_t>(v)]);
        partials.push_back(std::make_unique<Partials>(backend, local.size(), elements));
        network.train_step(input_of(samples, pixels, first, rows), shards, range, sizes, weights.data(),
                           partials.back()->pointers(), [](int64_t) {});
        nodes.insert(nodes.end(), local.begin(), local.end());
        values.insert(values.end(), partials.back()->pointers().begin(), partials.back()->pointers().end());
        first += rows;
    }
    for (const JoinStep step : join_program(shards, nodes)) {
        float* const into = values[static_cast<std::size_t>(step.into)];
        const float* const from = values[static_cast<std::size_t>(step.from)];
        for (int64_t i = 0; i < kLead + elements; ++i) into[i] = into[i] + from[i];
    }
    return {values[0][kLeadLoss], {values[0] + kLead, values[0] + kLead + elements}};
}

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
inline bool same_bytes(const StepSums& a, const StepSums& b) {
    return std::memcmp(&a.loss, &b.loss, sizeof(float)) == 0 && same_bytes(a.gradient, b.gradient);
}

}  // namespace lockstep

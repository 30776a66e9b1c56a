#include "nn/branched_models.hpp"

#include <utility>

#include "backend/cpu/cpu_backend.hpp"
#include "comm/thread_communicator.hpp"
#include "nn/builder.hpp"

namespace lockstep {
namespace {

ModelSpec spec_of(SampleShape input, bool global = false) {
    ModelSpec spec;
    spec.input = input;
    spec.classes = 5;
    spec.dropout = 0.25;
    spec.global_norm = global;
    spec.norm_momentum = 0.75;
    return spec;
}

int conv_norm_relu(Builder& builder, const std::string& n, int channels, const Window& window) {
    builder.conv_norm("conv" + n, "bn" + n, channels, window);
    return builder.relu("relu" + n);
}

/// Gradients of three readers, in one output; every layer that joins; no batch norm.
Model joining_model(const ModelSpec& spec) {
    Builder builder(spec);
    builder.conv("conv1", 4, Window::same(3));
    const int shared = builder.relu("relu1");
    const int left = builder.conv("conv2", 4, Window::same(3), {.start = WeightStart::kSmall, .bias = false});
    builder.continue_from(shared);
    builder.conv("conv3", 4, Window::same(1));
    const int right = builder.sigmoid("sigmoid1");
    builder.add("add1", {shared, left, right, shared});
    const int sum = builder.relu("relu2");
    builder.continue_from(shared);
    const int padded = builder.pad_channels("pad1", 1, 2);
    builder.concat("concat1", {sum, padded});
    builder.lrn("lrn1", 2, 1.0F, 0.1F, 0.75F);
    const int pooled = builder.max_pool("pool1", Window::padded(3, 2, 1));
    builder.average_pool("pool2", Window::padded(3, 1, 1));
    builder.dropout();
    builder.concat("concat2", {pooled, builder.at()});
    builder.global_pool("pool3");
    const int features = builder.at();
    const int deep = (builder.dense("fc1", 7), builder.relu("relu3"));
    builder.dropout();
    builder.dense("fc2", 3);
    builder.concat("concat3", {features, deep, builder.at()});
    builder.logits("fc3");
    return std::move(builder).finish();
}

/// Dense layers with batch norm, which run shard by shard.
Model dense_model(const ModelSpec& spec) {
    Builder builder(spec);
    for (const char* const n : {"1", "2"}) {
        const int skipped = builder.at();
        builder.dense(std::string("fc") + n, 9, {.start = WeightStart::kSmall, .bias = n[0] == '2'});
        builder.batch_norm(std::string("bn") + n);
        builder.relu(std::string("relu") + n);
        if (n[0] == '2') builder.add("add", {skipped, builder.at()});
    }
    builder.dropout();
    builder.logits("fc3");
    return std::move(builder).finish();
}

}  // namespace

NamedModel residual_model(bool global) {
    NamedModel named{global ? "residual global" : "residual shard", spec_of({7, 6, 2}, global), {}};
    Builder builder(named.spec);
    const int first = conv_norm_relu(builder, "1", 4, Window::same(3));
    conv_norm_relu(builder, "2", 4, Window::same(3));
    builder.conv_norm("conv3", "bn3", 4, Window::same(3));
    builder.add("add1", {builder.at(), first});
    const int block = builder.relu("relu3");
    conv_norm_relu(builder, "4", 6, Window::same(3, 2));
    builder.conv_norm("conv5", "bn5", 6, Window::same(3));
    const int residual = builder.at();
    builder.continue_from(block);
    builder.conv_norm("shortcut", "bn6", 6, Window::same(1, 2));
    builder.add("add2", {residual, builder.at()});
    builder.relu("relu5");
    builder.global_pool("pool1");
    builder.logits("fc1");
    named.model = std::move(builder).finish();
    return named;
}

std::vector<NamedModel> branched_models() {
    std::vector<NamedModel> models;
    models.push_back(residual_model(false));
    models.push_back(residual_model(true));
    for (const bool global : {false, true}) {
        NamedModel& dense = models.emplace_back();
        dense.name = global ? "dense global" : "dense shard";
        dense.spec = spec_of({1, 1, 11}, global);
        dense.model = dense_model(dense.spec);
    }
    NamedModel& joining = models.emplace_back();
    joining.name = "joining";
    joining.spec = spec_of({8, 8, 3});
    joining.model = joining_model(joining.spec);
    return models;
}

WorldResult threaded_step(const Model& model, const Samples& samples, const std::vector<int64_t>& sizes,
                          const std::vector<float>& weights, const WorldCast& cast) {
    struct OfRank {
        std::vector<ShardRange> nodes;
        std::vector<std::vector<float>> sums;
        std::vector<float> weights;
    };
    std::vector<OfRank> ranks(static_cast<std::size_t>(cast.world));
    const auto shards = static_cast<int>(sizes.size());
    const int64_t elements = model.parameters.flat_elements();
    const auto floats = static_cast<std::size_t>(kLead + elements);
    const int64_t pixels = model.layers[0].in.elements();
    run_thread_world(cast.world, [&](Communicator& comm) {
        OfRank& own = ranks[static_cast<std::size_t>(comm.rank())];
        const auto backend = make_cpu_backend({Isa::kAuto, cast.threads});
        Network network(model, *backend, cast.micro, nullptr, cast.exchange ? &comm : nullptr);
        const ShardRange range = shards_of_rank(shards, comm.rank(), comm.size());
        own.nodes = maximal_nodes(shards, range, sizes);
        int first = 0;
        int rows = 0;
        for (int v = 0; v < range.end; ++v) {
            (v < range.begin ? first : rows) += static_cast<int>(sizes[static_cast<std::size_t>(v)]);
        }
        own.weights = weights;
        const Partials partials(*backend, own.nodes.size(), elements);
        for (int step = 0; step < 2; ++step) {  // the second with the plans of the first: nothing of it is left in them
            own.weights = weights;
            network.train_step(input_of(samples, pixels, first, rows), shards, range, sizes, own.weights.data(),
                               partials.pointers(), [](int64_t) {});
            network.update_running(own.weights.data());
        }
        for (const float* sum : partials.pointers()) own.sums.emplace_back(sum, sum + floats);
    });
    std::vector<ShardRange> nodes;
    std::vector<std::vector<float>> values;
    WorldResult result;
    result.weights = ranks[0].weights;
    for (OfRank& rank : ranks) {
        nodes.insert(nodes.end(), rank.nodes.begin(), rank.nodes.end());
        for (auto& sum : rank.sums) values.push_back(std::move(sum));
        result.replicas_equal = result.replicas_equal && same_bytes(rank.weights, result.weights);
    }
    for (const JoinStep step : join_program(shards, nodes)) {
        std::vector<float>& into = values[static_cast<std::size_t>(step.into)];
        const std::vector<float>& from = values[static_cast<std::size_t>(step.from)];
        for (std::size_t i = 0; i < floats; ++i) into[i] = into[i] + from[i];
    }
    result.sums = {values[0][kLeadLoss], {values[0].begin() + kLead, values[0].end()}};
    return result;
}

}  // namespace lockstep

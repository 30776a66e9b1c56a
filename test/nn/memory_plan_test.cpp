// Which outputs of layers keep a place until the way back, and which share one.
#include "nn/memory_plan.hpp"

#include <catch2/catch.hpp>

#include "nn/zoo.hpp"

namespace lockstep {
namespace {

Model lenet() {
    ModelSpec spec;
    spec.name = "lenet";
    spec.input = {28, 28, 1};
    spec.dropout = 0.5;
    return build_model(spec);
}

constexpr auto kKept = Place::Kind::kKept;
constexpr auto kTransient = Place::Kind::kTransient;

}  // namespace

TEST_CASE("in training only what the way back reads is kept: pooled maps and the outputs of dense layers") {
    const Model model = lenet();  // conv1 relu1 pool1 conv2 relu2 pool2 fc1 relu3 dropout1 fc2
    const MemoryPlan plan = plan_memory(model.layers, model.prefix, true);
    CHECK(plan.outputs[0].kind == kTransient);
    CHECK(plan.outputs[1] == plan.outputs[0]);  // a relu works in place
    CHECK(plan.outputs[2] == Place{kKept, 0});
    CHECK(plan.outputs[3].kind == kTransient);
    CHECK(plan.outputs[5] == Place{kKept, 1});
    CHECK(plan.outputs[6] == Place{kKept, 2});
    CHECK(plan.outputs[8] == Place{kKept, 2});  // dropout, too
    CHECK(plan.outputs[9] == Place{kKept, 3});
    CHECK(plan.kept_elements == std::vector<int64_t>{14 * 14 * 32, 7 * 7 * 64, 512, 10});
    CHECK(plan.transient_elements == std::vector<int64_t>{28 * 28 * 32, 14 * 14 * 32});
    CHECK(plan.gradient_elements == std::vector<int64_t>{7 * 7 * 64, 512});
}

TEST_CASE("evaluation keeps nothing inside the convolutional part, and neighbours use different regions") {
    const Model model = lenet();
    const MemoryPlan plan = plan_memory(model.layers, model.prefix, false);
    CHECK(plan.outputs[0] == Place{kTransient, 0});
    CHECK(plan.outputs[2] == Place{kTransient, 1});
    CHECK(plan.outputs[3] == Place{kTransient, 0});
    CHECK(plan.outputs[5] == Place{kKept, 0});
}

TEST_CASE("a relu that no pooling undoes keeps its output for the mask") {
    Model model = lenet();
    model.layers[2].masks_relu = model.layers[1].backward_done = false;
    CHECK(plan_memory(model.layers, model.prefix, true).outputs[0].kind == kKept);
    CHECK(plan_memory(model.layers, model.prefix, false).outputs[0].kind == kTransient);
}

TEST_CASE("a relu of the samples, or of an output that others read, gets a place of its own") {
    Model model;
    const auto add = [&](LayerKind kind, std::vector<int> inputs) {
        LayerSpec& layer = model.layers.emplace_back();
        layer.kind = kind;
        layer.inputs = std::move(inputs);
        layer.in = layer.out = {4, 4, 2};
    };
    add(LayerKind::kRelu, {-1});
    add(LayerKind::kRelu, {0});
    add(LayerKind::kRelu, {0});
    add(LayerKind::kAdd, {1, 2});
    link_layers(model);
    CHECK_FALSE(model.layers[0].in_place());
    CHECK_FALSE(model.layers[1].in_place());
    const MemoryPlan plan = plan_memory(model.layers, model.prefix, true);
    CHECK(plan.outputs[1] != plan.outputs[0]);
    CHECK(plan.outputs[2] != plan.outputs[1]);
}

}  // namespace lockstep

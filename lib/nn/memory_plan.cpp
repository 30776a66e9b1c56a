#include "nn/memory_plan.hpp"

#include "core/error.hpp"
#include "nn/gradient_plan.hpp"
#include "nn/value_lives.hpp"

namespace lockstep {
namespace {

/// Values that the way back reads.
std::vector<bool> read_on_the_way_back(std::span<const LayerSpec> layers, const ValueLives& lives) {
    std::vector<bool> read(layers.size(), false);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const LayerSpec& layer = layers[i];
        if (layer.backward_reads_output()) read[lives.root(i)] = true;
        if (layer.backward_reads_input() && layer.inputs[0] >= 0) {
            read[lives.root(static_cast<std::size_t>(layer.inputs[0]))] = true;
        }
    }
    return read;
}

}  // namespace

MemoryPlan plan_memory(std::span<const LayerSpec> layers, std::size_t prefix, bool training) {
    MemoryPlan plan;
    const ValueLives lives(layers, prefix, training);
    const std::vector<bool> read_back = read_on_the_way_back(layers, lives);
    PlacePool transient(plan.transient_elements);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const LayerSpec& layer = layers[i];
        if (layer.in_place()) {
            if (layer.inputs[0] < 0) {
                fail(ErrorKind::kRuntime, "layer {}: would overwrite the caller's samples", layer.name);
            }
            plan.outputs.push_back(plan.outputs[lives.root(i)]);
        } else if (lives.crosses_forward(i) || (training && read_back[i])) {
            plan.outputs.push_back({Place::Kind::kKept, static_cast<int>(plan.kept_elements.size())});
            plan.kept_elements.push_back(layer.out.elements());
        } else {
            plan.outputs.push_back({Place::Kind::kTransient, transient.take(layer.out.elements())});
        }
        for (std::size_t value = 0; value <= i; ++value) {
            if (lives.root(value) == value && lives.last_use(value) == i &&
                plan.outputs[value].kind == Place::Kind::kTransient) {
                transient.give(plan.outputs[value].number);
            }
        }
    }
    if (training) plan_gradients(layers, prefix, lives, transient, plan);
    return plan;
}

}  // namespace lockstep

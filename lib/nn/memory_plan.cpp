#include "nn/memory_plan.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep {
namespace {

/// Whether the output of layer i outlives its block: read by the suffix or, in training, by the way back.
bool is_kept(std::span<const LayerSpec> layers, std::size_t i, std::size_t prefix, bool training) {
    for (std::size_t user = i;; ++user) {
        if (user + 1 >= prefix) return true;
        if (training && layers[user].backward_reads_output()) return true;
        if (training && layers[user + 1].backward_reads_input()) return true;
        if (!layers[user + 1].in_place()) return false;
    }
}

}  // namespace

MemoryPlan plan_memory(std::span<const LayerSpec> layers, std::size_t prefix, bool training) {
    MemoryPlan plan;
    int region = 1;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const LayerSpec& layer = layers[i];
        const int64_t elements = layer.out.elements();
        if (layer.in_place()) {
            if (i == 0) fail(ErrorKind::kRuntime, "layer {}: would overwrite the caller's samples", layer.name);
            plan.outputs.push_back(plan.outputs.back());
        } else if (is_kept(layers, i, prefix, training)) {
            plan.outputs.push_back({Place::Kind::kKept, static_cast<int>(plan.kept_elements.size())});
            plan.kept_elements.push_back(elements);
        } else {
            region = 1 - region;
            plan.outputs.push_back({Place::Kind::kTransient, region});
            plan.transient_elements = std::max(plan.transient_elements, elements);
        }
        if (training && i < prefix) plan.transient_elements = std::max(plan.transient_elements, elements);
        if (training && i + 1 >= prefix)
            plan.suffix_gradient_elements = std::max(plan.suffix_gradient_elements, elements);
    }
    return plan;
}

}  // namespace lockstep

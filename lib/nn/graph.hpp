// A model on a backend: its layers as operations, where their activations live, and how a shard's gradients of the
// prefix lie in one leaf. Fixed when the network is made; what depends on the rows is StepPlan.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "nn/layer.hpp"
#include "nn/memory_plan.hpp"
#include "nn/zoo.hpp"

namespace lockstep {

struct Graph {
    Graph(Model model_, Backend& backend_);

    const MemoryPlan& memory(bool training) const { return training ? training_memory : evaluation_memory; }
    int outputs() const { return model.layers.back().out.channels; }

    Backend& backend;
    Model model;
    std::vector<std::unique_ptr<Layer>> layers;
    MemoryPlan training_memory, evaluation_memory;
    std::vector<int64_t> leaf_offsets;  // of each layer of the prefix: where its part of a leaf begins; the end
    int64_t leaf_elements = 0;          // 0: the prefix has no weights
    bool has_norms = false;  // a block's statistics are wanted before its next layer: training takes whole ones
    std::vector<std::size_t> borders;  // layers at which all blocks meet in training, ascending
};

}  // namespace lockstep

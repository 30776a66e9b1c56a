// Where the gradients of the way back lie, and how those of an output with several readers are added: readers come in
// descending order, so the last layer that reads it writes, and the others add theirs.
#pragma once

#include <cstddef>
#include <span>

#include "nn/memory_plan.hpp"
#include "nn/value_lives.hpp"

namespace lockstep {

/// Fills plan.back and gradient_elements; `transient` hands out transient places, all of which are free.
void plan_gradients(std::span<const LayerSpec> layers, std::size_t prefix, const ValueLives& lives,
                    PlacePool& transient, MemoryPlan& plan);

}  // namespace lockstep

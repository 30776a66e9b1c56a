#include "nn/step_run.hpp"

namespace lockstep {

StepRun::StepRun(const Graph& graph, const StepPlan& plan, std::byte* arena, const NetworkInput& input,
                 const float* weights)
    : graph_(graph),
      model_(graph.model),
      memory_(graph.memory(plan.training)),
      backend_(graph.backend),
      plan_(plan),
      arena_(arena),
      input_(input),
      weights_(weights) {}

void StepRun::forward(bool prepare) {
    if (prepare) {
        for (const auto& layer : graph_.layers) layer->prepare(backend_.main(), weights_);
    }
    if (!plan_.ranges.empty()) forward_prefix();
    for (std::size_t i = model_.prefix; i < graph_.layers.size(); ++i) {
        graph_.layers[i]->forward(pass(backend_.main(), all_rows()), values(i, all_rows(), 0));
    }
}

const float* StepRun::logits() const {
    return address(memory_.outputs.back(), graph_.classes(), 0, 0);
}

void StepRun::loss() {
    float* const losses = floats(plan_.losses);
    backend_.softmax_cross_entropy(backend_.main(), input_.rows, graph_.classes(), logits(), input_.labels, losses,
                                   suffix_gradient(0));
    if (input_.loss_scale != 1) {  // a power of two: exact
        const int64_t logit_count = int64_t{input_.rows} * graph_.classes();
        backend_.scale(backend_.main(), logit_count, input_.loss_scale, suffix_gradient(0));
    }
    backend_.fold_rows(backend_.main(), plan_.fold, 1, losses, plan_.loss_sums);
}

void StepRun::backward_suffix(FunctionRef<void(int64_t)> ready) {
    const Pass all = pass(backend_.main(), all_rows());
    for (std::size_t i = graph_.layers.size(); i-- > model_.prefix;) {
        const LayerSpec& spec = model_.layers[i];
        float* const dy = suffix_gradient(turn_);
        if (spec.in_place()) {
            graph_.layers[i]->backward(all, values(i, all_rows(), 0), dy, dy);
        } else if (spec.data_gradient) {
            turn_ = 1 - turn_;
            graph_.layers[i]->backward(all, values(i, all_rows(), 0), dy, suffix_gradient(turn_));
        }
        if (spec.has_weights()) {
            graph_.layers[i]->backward_folded(all, values(i, all_rows(), 0), dy, plan_.gradients);
            ready(spec.weight);
        }
    }
}

void StepRun::backward_prefix() {
    backend_.for_each_range(plan_.ranges, [&](Stream& stream, int r) {
        const ShardRange range = plan_.ranges[static_cast<std::size_t>(r)];
        for (int b = range.begin; b < range.end; ++b) {
            const LeafProgram::Leaf& leaf = plan_.leaves.leaves[static_cast<std::size_t>(b)];
            backward_block(stream, r, plan_.blocks[static_cast<std::size_t>(b)], slot(leaf.slot));
            for (int a = leaf.adds_begin; a < leaf.adds_end; ++a) {
                add(stream, plan_.leaves.adds[static_cast<std::size_t>(a)]);
            }
        }
    });
    for (const SlotAdd& join : plan_.leaves.joins) add(backend_.main(), join);
    for (std::size_t root = 0; root < plan_.leaves.roots.size(); ++root) {
        const float* const sum = slot(plan_.leaves.roots[root]);
        for (std::size_t i = 0; i < model_.prefix; ++i) {
            graph_.layers[i]->store_leaf(backend_.main(), sum + graph_.leaf_offsets[i], plan_.gradients[root]);
        }
    }
}

void StepRun::forward_prefix() {
    backend_.for_each_range(plan_.ranges, [&](Stream& stream, int r) {
        const ShardRange range = plan_.ranges[static_cast<std::size_t>(r)];
        for (int b = range.begin; b < range.end; ++b) {
            const Block block = plan_.blocks[static_cast<std::size_t>(b)];
            for (int number = 0; number < plan_.pieces(block); ++number) {
                const Block piece = plan_.piece(block, number);
                for (std::size_t i = 0; i < model_.prefix; ++i) {
                    graph_.layers[i]->forward(pass(stream, piece), values(i, piece, r));
                }
            }
        }
    });
}

void StepRun::backward_block(Stream& stream, int r, Block block, float* leaf) {
    const Pass rows = pass(stream, block);
    const int64_t elements = model_.layers[model_.prefix - 1].out.elements();
    float* dy = suffix_gradient(turn_) + block.first * elements;
    int region = 0;
    for (std::size_t i = model_.prefix; i-- > 0;) {
        const LayerSpec& spec = model_.layers[i];
        const LayerValues at = values(i, block, r);
        if (spec.has_weights()) graph_.layers[i]->backward_leaf(rows, at, dy, leaf + graph_.leaf_offsets[i]);
        if (!spec.data_gradient) return;  // no weights before it
        float* const dx = spec.in_place() ? dy : transient(r, region);
        if (!spec.in_place()) region = 1 - region;
        graph_.layers[i]->backward(rows, at, dy, dx);
        dy = dx;
    }
}

void StepRun::add(Stream& stream, SlotAdd operands) {
    backend_.add(stream, graph_.leaf_elements, slot(operands.into), slot(operands.from), slot(operands.into));
}

Pass StepRun::pass(Stream& stream, Block block) const {
    return {.stream = stream,
            .plan = plan_.number,
            .rows = block.rows,
            .training = plan_.training,
            .epoch = static_cast<uint32_t>(input_.epoch),
            .positions = plan_.training ? input_.positions + block.first : nullptr,
            .weights = weights_};
}

LayerValues StepRun::values(std::size_t i, Block block, int r) const {
    const LayerSpec& spec = model_.layers[i];
    LayerValues at;
    const Place in = memory_.input_of(i);
    at.x = in.kind == Place::Kind::kInput ? input_.pixels + block.first * spec.in.elements()
                                          : address(in, spec.in.elements(), block.first, r);
    at.y = address(memory_.outputs[i], spec.out.elements(), block.first, r);
    if (spec.tap_bytes() > 0) {
        at.taps = reinterpret_cast<uint8_t*>(arena_ + plan_.taps[i]) + block.first * spec.tap_bytes();
    }
    return at;
}

float* StepRun::address(Place place, int64_t elements, int first_row, int r) const {
    if (place.kind == Place::Kind::kTransient) return transient(r, place.number);
    return floats(plan_.kept[static_cast<std::size_t>(place.number)]) + first_row * elements;
}

}  // namespace lockstep

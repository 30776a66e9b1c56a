#include "nn/step_run.hpp"

namespace lockstep {

StepRun::StepRun(const Graph& graph, const StepPlan& plan, std::byte* arena, const NetworkInput& input,
                 const float* weights, NormExchange* norms, int first_leaf)
    : graph_(graph),
      model_(graph.model),
      memory_(graph.memory(plan.training)),
      backend_(graph.backend),
      plan_(plan),
      arena_(arena),
      input_(input),
      weights_(weights),
      norms_(norms),
      first_leaf_(first_leaf) {}

void StepRun::forward(bool prepare) {
    if (prepare) {
        for (const auto& layer : graph_.layers) layer->prepare(backend_.main(), weights_);
    }
    if (!plan_.ranges.empty()) {
        std::size_t begin = 0;
        for (const std::size_t border : graph_.borders) {
            if (!plan_.training) break;
            forward_segment({begin, border});
            norms_->meet_forward(border);
            begin = border;
        }
        forward_segment({begin, model_.prefix});
    }
    for (std::size_t i = model_.prefix; i < graph_.layers.size(); ++i) {
        graph_.layers[i]->forward(pass(backend_.main(), all_rows()), values(i, all_rows(), 0));
    }
}

const float* StepRun::logits() const {
    return address(memory_.outputs.back(), graph_.outputs(), 0, 0);
}

void StepRun::forward_segment(Segment segment) {
    backend_.for_each_range(plan_.ranges, [&](Stream& stream, int r) {
        const ShardRange range = plan_.ranges[static_cast<std::size_t>(r)];
        for (int b = range.begin; b < range.end; ++b) {
            const Block block = plan_.blocks[static_cast<std::size_t>(b)];
            for (int number = 0; number < plan_.pieces(block); ++number) {
                const Block piece = plan_.piece(block, number);
                for (std::size_t i = segment.begin; i < segment.end; ++i) {
                    graph_.layers[i]->forward(pass(stream, piece), values(i, piece, r));
                }
            }
            if (plan_.training && is_border(segment.end)) leave_moments(segment.end, stream, block, r);
        }
    });
}

void StepRun::leave_moments(std::size_t border, Stream& stream, Block block, int r) {
    const LayerSpec& spec = model_.layers[border];
    const LayerValues at = values(border, block, r);
    backend_.batch_moments(stream, int64_t{block.rows} * spec.in.height * spec.in.width, spec.in.channels, at.x,
                           at.moments);
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
    for (std::size_t k = 0; k < spec.inputs.size(); ++k) {
        const int input = spec.inputs[k];
        if (input < 0) {
            at.inputs[k] = input_.pixels + block.first * model_.layers.front().in.elements();
            continue;
        }
        const auto from = static_cast<std::size_t>(input);
        at.inputs[k] = address(memory_.outputs[from], model_.layers[from].out.elements(), block.first, r);
    }
    at.x = at.inputs[0];
    at.y = address(memory_.outputs[i], spec.out.elements(), block.first, r);
    if (plan_.training && spec.kind == LayerKind::kBatchNorm) {
        at.moments = norms_->moments(i, first_leaf_ + block.number);
        at.statistics = spec.norm.global
                            ? norms_->statistics(i)
                            : floats(plan_.statistics + block.number * plan_.statistics_bytes) + norms_->offset(i);
        at.samples = spec.norm.global ? norms_->samples() : block.rows;
    }
    if (spec.tap_bytes() > 0) {
        at.taps = reinterpret_cast<uint8_t*>(arena_ + plan_.taps[i]) + block.first * spec.tap_bytes();
    }
    return at;
}

float* StepRun::address(Place place, int64_t elements, int first_row, int r) const {
    const auto number = static_cast<std::size_t>(place.number);
    if (place.kind == Place::Kind::kTransient) {
        return floats(plan_.transient + r * plan_.transient_bytes + plan_.transient_places[number]);
    }
    const bool gradient = place.kind == Place::Kind::kGradient;
    return floats((gradient ? plan_.gradient_arrays : plan_.kept)[number]) + first_row * elements;
}

}  // namespace lockstep

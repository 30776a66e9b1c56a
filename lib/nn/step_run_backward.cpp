// The way back of a pass: loss, data gradients from the last layer to the first, weight gradients right after.
#include "nn/step_run.hpp"

namespace lockstep {

void StepRun::loss() {
    float* const losses = floats(plan_.losses);
    float* const dlogits = output_gradient(graph_.layers.size() - 1, all_rows(), 0);
    run_loss(backend_, backend_.main(), model_.loss, input_.rows, graph_.outputs(), logits(), input_.labels, losses,
             dlogits);
    if (input_.loss_scale != 1) {  // a power of two: exact
        const int64_t logit_count = int64_t{input_.rows} * graph_.outputs();
        backend_.scale(backend_.main(), logit_count, input_.loss_scale, dlogits);
    }
    backend_.fold_rows(backend_.main(), plan_.fold, 1, losses, plan_.loss_sums);
}

void StepRun::backward_suffix(FunctionRef<void(int64_t)> ready) {
    const Pass all = pass(backend_.main(), all_rows());
    for (std::size_t i = graph_.layers.size(); i-- > model_.prefix;) {
        const LayerSpec& spec = model_.layers[i];
        if (!memory_.back[i].runs) {
            surely_finite_ = surely_finite_ && !spec.has_weights();
            continue;
        }
        backward_layer(i, backend_.main(), all_rows(), 0, nullptr);
        if (spec.has_weights()) {
            surely_finite_ = surely_finite_ && factors_are_small(i);
            graph_.layers[i]->backward_folded(all, values(i, all_rows(), 0), output_gradient(i, all_rows(), 0),
                                              plan_.gradients);
            ready(spec.weight);
        }
    }
}

/// A sum of n products below 2^80, its n roundings and those of further sums of such sums included, is below n 2^83 for
/// n up to 2^25 terms in all: far from 2^128, whatever the order.
bool StepRun::factors_are_small(std::size_t i) const {
    constexpr float kLimit = 0x1p40F;
    const LayerSpec& spec = model_.layers[i];
    return spec.kind == LayerKind::kDense &&
           backend_.surely_below(backend_.main(), input_.rows * spec.out.elements(), output_gradient(i, all_rows(), 0),
                                 kLimit) &&
           backend_.surely_below(backend_.main(), input_.rows * spec.in.elements(), values(i, all_rows(), 0).x, kLimit);
}

void StepRun::backward_prefix() {
    Segment segment{0, model_.prefix};
    for (auto border = graph_.borders.rbegin(); border != graph_.borders.rend(); ++border) {
        segment.begin = *border + 1;
        backward_segment(segment);
        norms_->meet_backward(*border);
        segment = {0, *border + 1, true};
    }
    backward_segment(segment);
    for (const SlotAdd& join : plan_.leaves.joins) add(backend_.main(), join, 0, graph_.leaf_elements);
    for (std::size_t root = 0; root < plan_.leaves.roots.size(); ++root) {
        const float* const sum = slot(plan_.leaves.roots[root]);
        for (std::size_t i = 0; i < model_.prefix; ++i) {
            graph_.layers[i]->store_leaf(backend_.main(), sum + graph_.leaf_offsets[i], plan_.gradients[root]);
        }
    }
}

// A border behind the segment belongs to it with its data gradient, one before it with its sums: those are the elements
// of a leaf that are final then.
void StepRun::backward_segment(Segment segment) {
    const std::size_t before = segment.begin > 0 ? segment.begin - 1 : 0;
    const int64_t first = graph_.leaf_offsets[before];
    const int64_t last = graph_.leaf_offsets[segment.resumes ? segment.end - 1 : segment.end];
    backend_.for_each_range(plan_.ranges, [&](Stream& stream, int r) {
        const ShardRange range = plan_.ranges[static_cast<std::size_t>(r)];
        for (int b = range.begin; b < range.end; ++b) {
            const LeafProgram::Leaf& leaf = plan_.leaves.leaves[static_cast<std::size_t>(b)];
            const Block block = plan_.blocks[static_cast<std::size_t>(b)];
            backward_block(stream, r, block, segment, slot(leaf.slot));
            if (segment.begin > 0) leave_sums(before, stream, block, r, slot(leaf.slot));
            for (int a = leaf.adds_begin; a < leaf.adds_end; ++a) {
                add(stream, plan_.leaves.adds[static_cast<std::size_t>(a)], first, last);
            }
        }
    });
}

void StepRun::backward_block(Stream& stream, int r, Block block, Segment segment, float* leaf) {
    const Pass rows = pass(stream, block);
    for (std::size_t i = segment.end; i-- > segment.begin;) {
        if (!memory_.back[i].runs) continue;
        if (model_.layers[i].has_weights() && !is_border(i)) {
            graph_.layers[i]->backward_leaf(rows, values(i, block, r), output_gradient(i, block, r),
                                            leaf + graph_.leaf_offsets[i]);
        }
        backward_layer(i, stream, block, r, leaf);
    }
}

/// A shard's sums are gamma's and beta's gradients, and its part of the whole batch's.
void StepRun::leave_sums(std::size_t border, Stream& stream, Block block, int r, float* leaf) {
    float* const sums = leaf + graph_.leaf_offsets[border];
    graph_.layers[border]->backward_leaf(pass(stream, block), values(border, block, r),
                                         output_gradient(border, block, r), sums);
    const int width = 2 * model_.layers[border].in.channels;
    const RowPart whole{width, 0};
    backend_.copy_part(stream, 1, width, sums, whole, norms_->sums(first_leaf_ + block.number), whole);
}

void StepRun::backward_layer(std::size_t i, Stream& stream, Block block, int r, const float* leaf) {
    using How = BackStep::Input::How;
    const LayerSpec& spec = model_.layers[i];
    const BackStep& step = memory_.back[i];
    const Pass rows = pass(stream, block);
    LayerValues at = values(i, block, r);
    if (spec.kind == LayerKind::kBatchNorm) {
        at.sums = spec.norm.global ? norms_->total_sums() : leaf + graph_.leaf_offsets[i];
    }
    float* const dy = output_gradient(i, block, r);
    if (spec.passes_gradient() && spec.kind != LayerKind::kAdd) graph_.layers[i]->backward(rows, at, dy, dy);
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
        const BackStep::Input& input = step.inputs[k];
        if (input.how == How::kNone || input.how == How::kTaken) continue;
        const int64_t elements = model_.layers[static_cast<std::size_t>(spec.inputs[k])].out.elements();
        float* const to = address(input.to, elements, block.first, r);
        const bool adds = input.how == How::kAdd;
        const float* dx = dy;
        if (!spec.passes_gradient()) {
            float* const made = adds ? address(input.scratch, elements, block.first, r) : to;
            at.input = static_cast<int>(k);
            graph_.layers[i]->backward(rows, at, dy, made);
            dx = made;
        } else if (!adds) {
            const RowPart whole{static_cast<int>(elements), 0};
            backend_.copy_part(stream, block.rows, static_cast<int>(elements), dy, whole, to, whole);
        }
        if (adds) backend_.add(stream, block.rows * elements, to, dx, to);
    }
}

/// Elements [begin, end) of two leaves.
void StepRun::add(Stream& stream, SlotAdd operands, int64_t begin, int64_t end) {
    float* const into = slot(operands.into) + begin;
    backend_.add(stream, end - begin, into, slot(operands.from) + begin, into);
}

}  // namespace lockstep

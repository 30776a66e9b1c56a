#include "nn/network_state.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "nn/step_run.hpp"

namespace lockstep {

StepPattern& Network::State::pattern_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes,
                                         bool alone) {
    const bool has_norms = training && norms.any();
    const std::span<const int64_t> known_sizes =
        has_norms ? sizes
                  : sizes.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
    for (const auto& pattern : patterns) {
        if (!pattern->is_for(training, shards, range, alone, known_sizes)) continue;
        pattern->last_use = ++uses;
        return *pattern;
    }
    StepPattern made;
    made.training = training;
    made.shards = shards;
    made.range = range;
    made.sizes.assign(known_sizes.begin(), known_sizes.end());
    made.alone = alone;
    made.last_use = ++uses;
    made.number = ++patterns_made;
    made.program = pass_program(shards, range, sizes, training ? most_rows : 0);
    if (has_norms) made.norms = norms_of(shards, range, sizes, alone);
    int leaves = 0;
    for (const PassProgram::Pass& pass : made.program.passes) {
        made.first_leaf.push_back(leaves);
        for (int v = pass.shards.begin; v < pass.shards.end; ++v) leaves += sizes[static_cast<std::size_t>(v)] > 0;
    }
    StepPattern& pattern = make_room();
    pattern = std::move(made);
    for (const PassProgram::Pass& pass : pattern.program.passes) {
        std::shared_ptr<StepPlan> plan = known(training, fold_program(shards, pass.shards, sizes));
        if (!plan) {
            plan = adopt(training ? plan_training(graph, shards, pass.shards, sizes, norms.elements())
                                  : plan_evaluation(graph, sizes));
        }
        pattern.plans.push_back(std::move(plan));
    }
    for (int i = pattern.program.roots + static_cast<int>(sums.size()); i < pattern.program.sums; ++i) {
        sums.push_back(graph.backend.allocate(static_cast<std::size_t>(sum_floats()) * sizeof(float)));
    }
    return pattern;
}

NormProgram Network::State::norms_of(int shards, ShardRange range, std::span<const int64_t> sizes, bool alone) const {
    if (alone || comm == nullptr) return norm_program(shards, {&range, 1}, 0, sizes);
    std::vector<ShardRange> ranges;
    for (int r = 0; r < comm->size(); ++r) ranges.push_back(shards_of_rank(shards, r, comm->size()));
    return norm_program(shards, ranges, static_cast<std::size_t>(comm->rank()), sizes);
}

void Network::State::check_passes(const PassProgram& program) const {
    if (!norms.has_borders() || program.passes.size() <= 1) return;
    fail(ErrorKind::kUsage,
         "batch.micro = {}: with batch_norm.scope = \"global\" a rank's samples ({}) must be in memory at once, since "
         "every layer's statistics are those of the whole batch; set batch.micro = 0, use more ranks, or "
         "batch_norm.scope = \"shard\"",
         most_rows, program.passes.back().first_row + program.passes.back().rows);
}

/// A rank without rows meets the others all the same, in the order in which they do.
void Network::State::take_part(FunctionRef<void(int64_t first)> ready) {
    if (graph.borders.empty()) return;
    for (const std::size_t border : graph.borders) norms.meet_forward(border);
    for (std::size_t i = graph.layers.size(); i-- > graph.model.prefix;) {
        if (graph.model.layers[i].has_weights()) ready(graph.model.layers[i].weight);
    }
    for (auto border = graph.borders.rbegin(); border != graph.borders.rend(); ++border) norms.meet_backward(*border);
}

/// A new one, or that which was not used for longest.
StepPattern& Network::State::make_room() {
    if (patterns.size() < kMostPatterns) return *patterns.emplace_back(std::make_unique<StepPattern>());
    const auto older = [](const auto& a, const auto& b) { return a->last_use < b->last_use; };
    return **std::min_element(patterns.begin(), patterns.end(), older);
}

std::shared_ptr<StepPlan> Network::State::known(bool training, const FoldProgram& fold) const {
    for (const auto& plan : plans) {
        if (plan != nullptr && plan->equals(training, fold)) return plan;
    }
    return nullptr;
}

/// Gives it a number that no pattern's plan has: the layers replace what they planned for the plan before.
std::shared_ptr<StepPlan> Network::State::adopt(StepPlan plan) {
    const auto unused = std::find_if(plans.begin(), plans.end(), [](const auto& p) { return p.use_count() == 1; });
    plan.number = static_cast<int>(unused - plans.begin());
    if (unused == plans.end()) plans.emplace_back();
    std::vector<int> block_rows;
    for (const Block& block : plan.blocks) {
        block_rows.push_back(block.rows);
        for (int i = 0; i < plan.pieces(block); ++i) block_rows.push_back(plan.piece(block, i).rows);
    }
    std::sort(block_rows.begin(), block_rows.end());
    block_rows.erase(std::unique(block_rows.begin(), block_rows.end()), block_rows.end());
    for (const auto& layer : graph.layers) layer->plan(plan.number, plan.fold, block_rows);
    if (plan.training) graph.backend.plan_fold_rows(plan.fold);
    if (!arena || static_cast<int64_t>(arena->bytes()) < plan.bytes) {
        arena.reset();  // nothing in it outlives a pass
        arena = graph.backend.allocate(static_cast<std::size_t>(plan.bytes));
    }
    const auto number = static_cast<std::size_t>(plan.number);
    plans[number] = std::make_shared<StepPlan>(std::move(plan));
    return plans[number];
}

/// Where the gradients of dense layers are several times what they are sums of, and the host waits for both alike.
bool Network::State::worth_looking_at_factors(int rows) const {
    if (graphs != nullptr || graph.model.prefix > 0 || rows == 0 || rows > 1 << 24) return false;
    int64_t factors = 0;
    for (const LayerSpec& layer : graph.model.layers) {
        if (layer.has_weights()) factors += rows * (layer.in.elements() + layer.out.elements());
    }
    return graph.model.parameters.flat_elements() > 2 * factors;
}

/// One pass over its rows; `ready` as in train_step.
void Network::State::run_pass(const StepPattern& pattern, std::size_t number, const NetworkInput& input,
                              const float* weights, std::span<float* const> partial,
                              FunctionRef<void(int64_t first)> ready) {
    const PassProgram& program = pattern.program;
    const PassProgram::Pass& pass = program.passes[number];
    StepPlan& plan = *pattern.plans[number];
    for (std::size_t i = 0; i < pass.sums.size(); ++i) {
        float* const values = sum(pass.sums[i], program, partial);
        plan.loss_sums[i] = values + kLeadLoss;
        plan.gradients[i] = values + kLead;
    }
    // Elements [first, end) of the sums that this pass completes, counted from the lead.
    const auto add = [&](int64_t first, int64_t end) {
        for (int a = pass.adds_begin; a < pass.adds_end; ++a) {
            const SlotAdd& operands = program.adds[static_cast<std::size_t>(a)];
            float* const into = sum(operands.into, program, partial) + first;
            const float* const from = sum(operands.from, program, partial) + first;
            graph.backend.add(graph.backend.main(), end - first, into, from, into);
        }
    };
    const int64_t flat = graph.model.parameters.flat_elements();
    NetworkInput rows = input;
    rows.rows = pass.rows;
    rows.pixels += pass.first_row * graph.model.layers.front().in.elements();
    rows.labels += pass.first_row;
    rows.positions += pass.first_row;
    StepRun run(graph, plan, arena->data(), rows, weights, &norms, pattern.first_leaf[number]);
    if (sums_surely_finite) run.look_at_factors();
    const auto work = [&](FunctionRef<void(int64_t first)> done) {
        auto gradients_final = [&, end = flat](int64_t first) mutable {
            add(kLead + first, kLead + end);
            end = first;
            done(first);
        };
        run.forward(number == 0);
        run.loss();
        add(kLeadLoss, kLeadLoss + 1);
        done(flat);
        run.backward_suffix(gradients_final);
        sums_surely_finite = run.surely_finite();
        if (graph.leaf_elements > 0) {
            run.backward_prefix();
            gradients_final(0);
        }
    };
    if (graphs == nullptr || norms.has_borders()) return work(ready);
    const auto none = [](int64_t) {};
    const auto all = [&] { work(none); };
    graphs->run(key_of(pattern, number, rows, weights, partial), all);
    tell_final(ready);
}

/// All that a pass's work depends on: its plan (by the pattern), where everything lies, and the numbers that go into
/// operations as they are.
std::span<const uint64_t> Network::State::key_of(const StepPattern& pattern, std::size_t number,
                                                 const NetworkInput& rows, const float* weights,
                                                 std::span<float* const> partial) {
    const auto address = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
    const bool drops = std::any_of(graph.model.layers.begin(), graph.model.layers.end(),
                                   [](const LayerSpec& layer) { return layer.kind == LayerKind::kDropout; });
    key.assign({address(this), pattern.number, number, address(arena->data()), address(weights), address(rows.pixels),
                address(rows.labels), address(rows.positions), std::bit_cast<uint32_t>(rows.loss_scale),
                drops ? static_cast<uint64_t>(rows.epoch) : 0});
    for (const float* root : partial) key.push_back(address(root));
    for (const auto& own : sums) key.push_back(address(own->data()));
    if (norms.any()) key.push_back(address(norms.moments(0, 0)));
    return key;
}

/// `ready` for everything, in the order of the work.
void Network::State::tell_final(FunctionRef<void(int64_t first)> ready) const {
    ready(graph.model.parameters.flat_elements());
    for (std::size_t i = graph.layers.size(); i-- > graph.model.prefix;) {
        if (graph.model.layers[i].has_weights()) ready(graph.model.layers[i].weight);
    }
    if (graph.leaf_elements > 0) ready(0);
}

}  // namespace lockstep

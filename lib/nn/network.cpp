#include "nn/network.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "nn/graph.hpp"
#include "nn/norm_exchange.hpp"
#include "nn/pass_program.hpp"
#include "nn/step_plan.hpp"
#include "nn/step_run.hpp"
#include "nn/zoo.hpp"

namespace lockstep {

namespace {

int64_t sum_floats(const Graph& graph) {
    return kLead + graph.model.parameters.flat_elements();
}

/// A pattern of shard sizes, and what a step of such shards does.
struct Pattern {
    bool training = true;
    int shards = 0;
    ShardRange range;
    std::vector<int64_t> sizes;  // of the shards in `range`; with batch norm of all
    bool alone = false;
    PassProgram program;                           // evaluation: one pass
    std::vector<std::shared_ptr<StepPlan>> plans;  // of each pass
    int64_t last_use = 0;
    uint64_t number = 0;          // no other pattern of the network has or had it
    NormProgram norms;            // training, where there is batch norm
    std::vector<int> first_leaf;  // of each pass: its first shard among those that are not empty

    bool is_for(bool training_, int shards_, ShardRange range_, bool alone_,
                std::span<const int64_t> known_sizes) const {
        return training == training_ && shards == shards_ && range == range_ && alone == alone_ &&
               std::equal(sizes.begin(), sizes.end(), known_sizes.begin(), known_sizes.end());
    }
};

}  // namespace

struct Network::State {
    State(Model model, Backend& backend, int64_t most_rows_, StepGraphs* graphs_, Communicator* comm_)
        : graph(std::move(model), backend),
          most_rows(most_rows_),
          graphs(graphs_),
          comm(comm_),
          norms(graph.model.layers, backend, comm_) {}

    Pattern& pattern_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes,
                         bool alone = true);
    NormProgram norms_of(int shards, ShardRange range, std::span<const int64_t> sizes, bool alone) const;
    void take_part(FunctionRef<void(int64_t first)> ready);
    void check_passes(const PassProgram& program) const;
    Pattern& make_room();
    std::shared_ptr<StepPlan> known(bool training, const FoldProgram& fold) const;
    std::shared_ptr<StepPlan> adopt(StepPlan plan);
    void run_pass(const Pattern& pattern, std::size_t number, const NetworkInput& input, const float* weights,
                  std::span<float* const> partial, FunctionRef<void(int64_t first)> ready);
    std::span<const uint64_t> key_of(const Pattern& pattern, std::size_t number, const NetworkInput& rows,
                                     const float* weights, std::span<float* const> partial);
    void tell_final(FunctionRef<void(int64_t first)> ready) const;
    float* sum(int number, const PassProgram& program, std::span<float* const> partial) {
        return number < program.roots ? partial[static_cast<std::size_t>(number)]
                                      : sums[static_cast<std::size_t>(number - program.roots)]->floats();
    }

    // With layout "epoch" the sizes of the shards go round: up to V patterns before the first one returns, each of
    // which has V entries. 64 of them are kept; with more, a step makes its plan anew, which costs little beside its
    // own work.
    static constexpr std::size_t kMostPatterns = 64;

    Graph graph;
    int64_t most_rows;
    StepGraphs* graphs;
    Communicator* comm;
    NormExchange norms;
    std::vector<uint64_t> key;  // of the graph asked for last
    std::vector<std::unique_ptr<Pattern>> patterns;
    uint64_t patterns_made = 0;
    std::vector<std::shared_ptr<StepPlan>> plans;  // by their numbers; patterns whose passes are alike share them
    int64_t uses = 0;
    std::unique_ptr<Buffer> arena;              // one for all plans: as large as the largest needs
    std::vector<std::unique_ptr<Buffer>> sums;  // of passes, [kLead | flat elements]
};

Pattern& Network::State::pattern_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes,
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
    Pattern made;
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
    Pattern& pattern = make_room();
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
        sums.push_back(graph.backend.allocate(static_cast<std::size_t>(sum_floats(graph)) * sizeof(float)));
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
Pattern& Network::State::make_room() {
    if (patterns.size() < kMostPatterns) return *patterns.emplace_back(std::make_unique<Pattern>());
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
    if (!arena || static_cast<int64_t>(arena->bytes()) < plan.bytes) {
        arena.reset();  // nothing in it outlives a pass
        arena = graph.backend.allocate(static_cast<std::size_t>(plan.bytes));
    }
    const auto number = static_cast<std::size_t>(plan.number);
    plans[number] = std::make_shared<StepPlan>(std::move(plan));
    return plans[number];
}

/// One pass over its rows; `ready` as in train_step.
void Network::State::run_pass(const Pattern& pattern, std::size_t number, const NetworkInput& input,
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
std::span<const uint64_t> Network::State::key_of(const Pattern& pattern, std::size_t number, const NetworkInput& rows,
                                                 const float* weights, std::span<float* const> partial) {
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

Network::Network(const ModelSpec& spec, Backend& backend, int64_t most_rows, StepGraphs* graphs, Communicator* comm)
    : Network(build_model(spec), backend, most_rows, graphs, comm) {}
Network::Network(Model model, Backend& backend, int64_t most_rows, StepGraphs* graphs, Communicator* comm)
    : state_(std::make_unique<State>(std::move(model), backend, most_rows, graphs, comm)) {}
Network::~Network() = default;

const ParameterTable& Network::parameters() const {
    return state_->graph.model.parameters;
}
int Network::outputs() const {
    return state_->graph.outputs();
}
const LossSpec& Network::loss() const {
    return state_->graph.model.loss;
}
int Network::classes() const {
    switch (loss().kind) {
        case LossKind::kSoftmax:
            return outputs();
        case LossKind::kSigmoid:
            return 2;
        case LossKind::kSquared:
            break;
    }
    return 0;
}

std::string Network::summary() const {
    std::string lines;
    for (const LayerSpec& layer : state_->graph.model.layers) {
        const SampleShape out = layer.out;
        lines += fmt::format("{:<10} {:<12} {}\n", layer.name,
                             fmt::format("{}x{}x{}", out.height, out.width, out.channels), layer.parameters);
    }
    return lines;
}

void Network::train_step(const NetworkInput& input, int shards, ShardRange range, std::span<const int64_t> sizes,
                         const float* weights, std::span<float* const> partial, FunctionRef<void(int64_t first)> ready,
                         FunctionRef<void()> pass_done) {
    State& state = *state_;
    if (input.rows == 0 && !state.norms.any()) return ready(0);  // a rank without samples: it has no partial sums
    const Pattern& pattern = state.pattern_for(true, shards, range, sizes, input.alone);
    const PassProgram& program = pattern.program;
    if (state.norms.any()) state.norms.begin(pattern.norms, input.alone);
    const int rows = program.passes.empty() ? 0 : program.passes.back().first_row + program.passes.back().rows;
    if (rows != input.rows || static_cast<std::size_t>(program.roots) != partial.size()) {
        fail(ErrorKind::kRuntime,
             "training step: {} rows and {} partial sums were given, shards [{}, {}) have {} and {}", input.rows,
             partial.size(), range.begin, range.end, rows, program.roots);
    }
    if (program.passes.empty()) {
        state.take_part(ready);
        return ready(0);
    }
    state.check_passes(program);
    const auto none = [](int64_t) {};
    for (std::size_t p = 0; p < program.passes.size(); ++p) {
        const bool last = p + 1 == program.passes.size();
        state.run_pass(pattern, p, input, weights, partial, last ? ready : FunctionRef<void(int64_t)>(none));
        if (!last) pass_done();
    }
}

void Network::update_running(float* weights) {
    if (state_->norms.any()) state_->norms.update_running(weights);
}

bool Network::has_batch_norm() const {
    return state_->norms.any();
}

bool Network::meets_in_step() const {
    return state_->norms.has_borders();
}

void Network::check_passes(int shards, ShardRange range, std::span<const int64_t> sizes) const {
    state_->check_passes(pass_program(shards, range, sizes, state_->most_rows));
}

const float* Network::logits(const float* pixels, int rows, const float* weights) {
    const int64_t size = rows;
    return logits(pixels, {&size, 1}, weights);
}

const float* Network::logits(const float* pixels, std::span<const int64_t> sizes, const float* weights) {
    State& state = *state_;
    const int shards = static_cast<int>(sizes.size());
    const StepPlan& plan = *state.pattern_for(false, shards, {0, shards}, sizes).plans.front();
    NetworkInput input;
    input.rows = plan.fold.rows;
    input.pixels = pixels;
    StepRun run(state.graph, plan, state.arena->data(), input, weights);
    run.forward(true);
    return run.logits();
}

int64_t Network::most_rows() const {
    return state_->most_rows;
}

int64_t Network::training_bytes(int shards, ShardRange range, std::span<const int64_t> sizes) const {
    int64_t most = 0;
    for (const PassProgram::Pass& pass : pass_program(shards, range, sizes, state_->most_rows).passes) {
        most = std::max(most, plan_training(state_->graph, shards, pass.shards, sizes, state_->norms.elements()).bytes);
    }
    return most;
}

int64_t Network::pass_sum_bytes(int shards, ShardRange range, std::span<const int64_t> sizes) const {
    const PassProgram program = pass_program(shards, range, sizes, state_->most_rows);
    return (program.sums - program.roots) * sum_floats(state_->graph) * static_cast<int64_t>(sizeof(float));
}

int64_t Network::evaluation_bytes(std::span<const int64_t> sizes) const {
    return plan_evaluation(state_->graph, sizes).bytes;
}

namespace {

NormProgram norms_of_rank(int shards, int rank, int world, std::span<const int64_t> sizes) {
    std::vector<ShardRange> ranges;
    for (int r = 0; r < world; ++r) ranges.push_back(shards_of_rank(shards, r, world));
    return norm_program(shards, ranges, static_cast<std::size_t>(rank), sizes);
}

}  // namespace

int64_t Network::norm_bytes(int shards, int rank, int world, std::span<const int64_t> sizes) const {
    return state_->norms.any() ? state_->norms.bytes(norms_of_rank(shards, rank, world, sizes)) : 0;
}

int64_t Network::norm_floats_sent(int shards, int rank, int world, std::span<const int64_t> sizes) const {
    if (!state_->norms.any() || world == 1) return 0;
    return state_->norms.floats_sent(norms_of_rank(shards, rank, world, sizes), rank);
}

int64_t Network::arena_bytes() const {
    return state_->arena ? static_cast<int64_t>(state_->arena->bytes()) : 0;
}

}  // namespace lockstep

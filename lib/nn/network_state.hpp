// What a Network is made of: the graph, what it has planned for each pattern of shard sizes, and the memory of a pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nn/graph.hpp"
#include "nn/network.hpp"
#include "nn/norm_exchange.hpp"
#include "nn/pass_program.hpp"
#include "nn/step_plan.hpp"
#include "nn/zoo.hpp"

namespace lockstep {

/// A pattern of shard sizes, and what a step of such shards does.
struct StepPattern {
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

struct Network::State {
    State(Model model, Backend& backend, int64_t most_rows_, StepGraphs* graphs_, Communicator* comm_)
        : graph(std::move(model), backend),
          most_rows(most_rows_),
          graphs(graphs_),
          comm(comm_),
          norms(graph.model.layers, backend, comm_) {}

    StepPattern& pattern_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes,
                             bool alone = true);
    NormProgram norms_of(int shards, ShardRange range, std::span<const int64_t> sizes, bool alone) const;
    void take_part(FunctionRef<void(int64_t first)> ready);
    void check_passes(const PassProgram& program) const;
    StepPattern& make_room();
    std::shared_ptr<StepPlan> known(bool training, const FoldProgram& fold) const;
    std::shared_ptr<StepPlan> adopt(StepPlan plan);
    void run_pass(const StepPattern& pattern, std::size_t number, const NetworkInput& input, const float* weights,
                  std::span<float* const> partial, FunctionRef<void(int64_t first)> ready);
    std::span<const uint64_t> key_of(const StepPattern& pattern, std::size_t number, const NetworkInput& rows,
                                     const float* weights, std::span<float* const> partial);
    bool worth_looking_at_factors(int rows) const;
    void tell_final(FunctionRef<void(int64_t first)> ready) const;
    /// Floats of a sum of gradients.
    int64_t sum_floats() const { return kLead + graph.model.parameters.flat_elements(); }
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
    std::vector<std::unique_ptr<StepPattern>> patterns;
    bool sums_surely_finite = false;  // of the last step
    uint64_t patterns_made = 0;
    std::vector<std::shared_ptr<StepPlan>> plans;  // by their numbers; patterns whose passes are alike share them
    int64_t uses = 0;
    std::unique_ptr<Buffer> arena;              // one for all plans: as large as the largest needs
    std::vector<std::unique_ptr<Buffer>> sums;  // of passes, [kLead | flat elements]
};

}  // namespace lockstep

// One step of gradient descent on y = 2x, prediction w x, loss = mean of ½ (w x - y)², w = 0, learning rate 0.1, data
// in order: it goes the way of every number, shard plan, shard sums, reducer, update, and can be worked out by hand.
#pragma once

#include <catch2/catch.hpp>

#include "backend/cpu/cpu_backend.hpp"
#include "comm/reducer.hpp"
#include "comm/thread_communicator.hpp"
#include "data/shard_plan.hpp"
#include "nn/network.hpp"
#include "optim/update.hpp"

namespace lockstep::test {

struct ToyResult {
    float gradient;  // mean over the batch
    float weight;    // after one step from 0
};

/// x = 1 … n as one global batch over `world` ranks with V = world.
inline ToyResult toy(int n, int world) {
    const ShardPlan plan(n, n, world, Layout::kBatch, LastBatch::kKeep);
    const std::vector<int64_t> sizes = plan.shard_sizes(0);
    ToyResult result{};
    run_thread_world(world, [&](Communicator& comm) {
        const auto backend = make_cpu_backend({Isa::kAuto, 1});
        std::vector<float> flat(kLead + 1, 0.0F);
        const ShardRange local = shards_of_rank(world, comm.rank(), comm.size());
        for (int v = local.begin; v < local.end; ++v) {
            const PositionRange part = plan.shard(0, v);
            for (int64_t p = part.first; p < part.first + part.count; ++p) {
                const auto x = static_cast<float>(p + 1);
                flat[kLead] += (0 * x - 2 * x) * x;
            }
        }
        float* const partial[] = {flat.data()};
        const auto reducer = make_canonical_reducer(comm, world, {kLead, 1}, 1024, 0, plain_adder());
        reducer->begin(sizes, partial);
        reducer->ready(0);
        reducer->finish();
        OptimizerSpec spec;
        spec.name = "sgd";
        Update update(spec, {{0, 1, true}}, 1, *backend);
        float weight = 0;
        const UpdateResult applied = update.apply(flat.data() + kLead, 0, n, 1, 0.1F, 0.1, &weight);
        REQUIRE(applied.finite);
        if (comm.rank() == 0) result = {flat[kLead] / static_cast<float>(n), weight};
    });
    return result;
}

}  // namespace lockstep::test

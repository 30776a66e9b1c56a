#include "train/forecast_step.hpp"

#include <algorithm>

#include "data/epoch_order.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostPatterns = 64;

/// Buckets of one length: the lead rides with the one that begins the gradient.
struct BucketShape {
    int64_t elements;
    int64_t lead;
    int64_t count;
};

std::vector<BucketShape> bucket_shapes(const Config& config, int64_t elements) {
    std::vector<BucketShape> shapes;
    for (const Bucket& bucket : make_buckets(elements, config.reduce.bucket_kib * 1024)) {
        const int64_t length = bucket.end - bucket.begin;
        const int64_t lead = bucket.begin == 0 ? kLead : 0;
        const auto same = std::find_if(shapes.begin(), shapes.end(), [&](const BucketShape& shape) {
            return shape.elements == length && shape.lead == lead;
        });
        if (same != shapes.end()) {
            ++same->count;
        } else {
            shapes.push_back({length, lead, 1});
        }
    }
    return shapes;
}

}  // namespace

Traffic canonical_traffic(const Config& config, int64_t elements, int rank, int world, std::span<const int64_t> sizes) {
    Traffic traffic;
    int64_t buckets = 0;
    int64_t largest = -1;
    for (const BucketShape& shape : bucket_shapes(config, elements)) {
        const ReducePlan plan =
            make_reduce_plan(static_cast<int>(sizes.size()), rank, world, sizes, shape.elements + shape.lead,
                             shape.lead, config.reduce.small_kib * 1024);
        traffic.bytes += shape.count * plan.bytes_sent;
        traffic.messages += shape.count * plan.messages;
        traffic.scratch_bytes =
            std::max(traffic.scratch_bytes, scratch_floats(plan) * static_cast<int64_t>(sizeof(float)));
        buckets += shape.count;
        if (shape.elements > largest) {
            largest = shape.elements;
            traffic.method = plan.method;
        }
    }
    traffic.scratch_bytes *= std::min<int64_t>(kReduceLanes, buckets);
    return traffic;
}

std::vector<int64_t> step_indices(const Config& config, const RunPlan& plan, ShardRange local, int64_t update,
                                  int64_t most) {
    const LoaderOptions options = training_loader_options(config, plan, local, update);
    const StepPosition at = step_position(update, plan.steps_per_epoch);
    const EpochOrder order(options.seed, at.epoch, plan.shards.samples(), options.shuffle, options.block);
    std::vector<int64_t> indices;
    for (int v = local.begin; v < local.end; ++v) {
        const PositionRange part = plan.shards.shard(at.step, v);
        for (int64_t i = 0; i < part.count && static_cast<int64_t>(indices.size()) < most; ++i) {
            indices.push_back(order.index(part.first + i));
        }
    }
    return indices;
}

std::vector<int64_t> telling_steps(const Config& config, const RunPlan& plan) {
    const int64_t all = plan.steps_per_epoch;
    if (config.batch.layout == "batch") return all > 1 ? std::vector<int64_t>{0, all - 1} : std::vector<int64_t>{0};
    const int64_t most = std::min<int64_t>(plan.shards.shards(), kMostPatterns);
    std::vector<int64_t> steps;
    for (int64_t step = 0; step < std::min(most, all); ++step) steps.push_back(step);
    for (int64_t step = std::max<int64_t>(static_cast<int64_t>(steps.size()), all - most - 1); step < all; ++step)
        steps.push_back(step);
    return steps;
}

}  // namespace lockstep

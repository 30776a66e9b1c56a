#include "train/evaluation_rows.hpp"

#include "nn/pass_program.hpp"
#include "train/device_input.hpp"
#include "train/settings.hpp"

namespace lockstep {

void for_each_piece(const EvaluationContext& context, const Dataset& data, const ShardPlan& plan,
                    FunctionRef<void(const EvaluationRows&)> visit) {
    DeviceInput device(context.backend, data.shape().elements());
    LoaderOptions options;
    options.shuffle = Shuffle::kNone;
    options.local = shards_of_rank(plan.shards(), context.comm.rank(), context.comm.size());
    options.last_update = plan.steps_per_epoch();
    options.threads = input_threads(context.config);
    Loader loader(data, plan, device.with_memory(options));
    context.comm.begin_work();
    for (int64_t piece = 0; piece < plan.steps_per_epoch(); ++piece) {
        const Batch& batch = loader.next([&] { context.comm.still_working(); });
        const NetworkInput rows = device.rows(batch);
        if (batch.rows == 0) visit({batch});
        const std::span<const int64_t> sizes = batch.shard_sizes;
        for (const PassProgram::Pass& pass :
             pass_program(plan.shards(), options.local, sizes, context.network.most_rows()).passes) {
            const float* const pixels = rows.pixels + pass.first_row * data.shape().elements();
            const auto own = sizes.subspan(static_cast<std::size_t>(pass.shards.begin),
                                           static_cast<std::size_t>(pass.shards.size()));
            visit({batch, pass.first_row, pass.rows, context.network.logits(pixels, own, context.weights),
                   rows.labels + pass.first_row});
        }
    }
    context.backend.synchronize();  // before the memory of its copies goes
}

}  // namespace lockstep

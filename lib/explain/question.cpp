// The question that a config asks: its job, as meant for one machine.
#include <algorithm>

#include "explain/facts.hpp"
#include "nn/zoo.hpp"
#include "train/settings.hpp"

namespace lockstep {
namespace {

/// Whether the model normalises by batches; without data, whose shape decides some models, as far as its name tells.
std::optional<bool> has_batch_norm(const Config& config, const DataFacts& data) {
    if (data.shape.elements() > 0) {
        const ParameterTable parameters =
            build_model(model_spec(config, data.shape, data.classes, data.columns)).parameters;
        return parameters.stored().size() > parameters.all().size();
    }
    if (config.model.name == "custom") return std::nullopt;
    return config.model.name.starts_with("resnet");
}

}  // namespace

Question question_of(const Config& config, const DataFacts& data) {
    Question q;
    q.samples = data.samples;
    q.batch = config.batch.size;
    q.drops = config.batch.last == "drop";
    q.steps = config.train.steps;
    const int64_t per_epoch = std::max<int64_t>(1, (q.samples + (q.drops ? 0 : q.batch - 1)) / q.batch);
    q.epochs = config.train.epochs.value_or((q.steps.value_or(per_epoch) + per_epoch - 1) / per_epoch);
    q.optimizer = config.optimizer;
    q.batch_norm = has_batch_norm(config, data);
    if (config.batch_norm.scope == "shard") q.norm_batch = std::max<int64_t>(1, q.batch / config.batch.shards);
    return q;
}

}  // namespace lockstep

// The question that a config asks: its job, as meant for one machine.
#include "explain/facts.hpp"

namespace lockstep {
namespace {

/// Whether the model normalises by batches; not known of a network that its layers say.
std::optional<bool> has_batch_norm(const std::string& model) {
    if (model == "custom") return std::nullopt;
    return model.starts_with("resnet");
}

}  // namespace

Question question_of(const Config& config, int64_t samples) {
    Question q;
    q.samples = samples;
    q.batch = config.batch.size;
    const int64_t per_epoch = (samples + q.batch - 1) / q.batch;
    q.epochs = config.train.epochs.value_or((config.train.steps.value_or(per_epoch) + per_epoch - 1) / per_epoch);
    q.optimizer = config.optimizer;
    q.batch_norm = has_batch_norm(config.model.name);
    return q;
}

}  // namespace lockstep

#include "explain/worker_batches.hpp"

namespace lockstep {

WorkerView::WorkerView(const Dataset& base, WorkerEpoch read, int64_t epoch, const LoaderOptions& options)
    : SampleView(base, std::move(read.indices)), positions_(std::move(read.positions)), epoch_(epoch) {
    if (options.augmentation.any()) augmentation_.emplace(options.augmentation, options.seed, base.shape());
}

int32_t WorkerView::read(int64_t index, std::span<float> pixels) const {
    if (!augmentation_) return SampleView::read(index, pixels);
    return augmentation_->read(base(), at(index), epoch_, positions_[static_cast<std::size_t>(index)], pixels);
}

WorkerBatches::WorkerBatches(const Dataset& base, WorkerEpoch read, int64_t batch, int shards, int64_t epoch,
                             LoaderOptions options)
    : view_(base, std::move(read), epoch, options), shards_(shards), batch_(batch) {
    if (view_.size() == 0) return;
    const ShardPlan plan(view_.size(), batch, shards, Layout::kBatch, LastBatch::kKeep);
    steps_ = plan.steps_per_epoch();
    options.augmentation = {};  // the view's
    options.shuffle = Shuffle::kNone;
    options.local = {0, shards};
    options.first_update = 1;
    options.last_update = steps_;
    loader_ = std::make_unique<Loader>(view_, plan, options);
}

bool WorkerBatches::next() {
    if (taken_ == steps_) return false;
    batch_now_ = &loader_->next();
    ++taken_;
    return true;
}

JointRows::JointRows(Backend& backend, int64_t rows, int64_t elements)
    : elements_(elements), pixels_(backend.allocate(static_cast<std::size_t>(rows * elements) * sizeof(float))) {
    labels_.reserve(static_cast<std::size_t>(rows));
    positions_.reserve(static_cast<std::size_t>(rows));
}

void JointRows::clear() {
    labels_.clear();
    positions_.clear();
    sizes_.clear();
}

void JointRows::append(const WorkerBatches& worker) {
    const Batch& batch = worker.batch();
    std::copy_n(batch.pixels, batch.rows * elements_, pixels_->floats() + rows() * elements_);
    labels_.insert(labels_.end(), batch.labels, batch.labels + batch.rows);
    positions_.insert(positions_.end(), worker.positions(), worker.positions() + batch.rows);
    sizes_.insert(sizes_.end(), batch.shard_sizes.begin(), batch.shard_sizes.end());
}

NetworkInput JointRows::input(int64_t epoch) const {
    NetworkInput input;
    input.epoch = epoch;
    input.rows = static_cast<int>(rows());
    input.pixels = pixels_->floats();
    input.labels = labels_.data();
    input.positions = positions_.data();
    return input;
}

}  // namespace lockstep

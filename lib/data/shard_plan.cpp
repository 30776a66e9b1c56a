#include "data/shard_plan.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep {
namespace {

// floor(a * b / c) for non-negative a, b, where a * b may need more than 64 bits (a billion samples, a million shards).
int64_t multiply_divide(int64_t a, int64_t b, int64_t c) {
    __extension__ using Wide = __int128;
    return static_cast<int64_t>(Wide{a} * b / c);
}

}  // namespace

ShardPlan::ShardPlan(int64_t samples, int64_t batch, int shards, Layout layout, LastBatch last)
    : samples_(samples), batch_(batch), shards_(shards), layout_(layout), last_(last) {
    if (samples < 1) fail(ErrorKind::kUsage, "the data set has {} samples: at least 1 is needed", samples);
    if (batch < 1) fail(ErrorKind::kUsage, "the global batch is {} samples: at least 1 is needed", batch);
    if (shards < 1) fail(ErrorKind::kUsage, "the batch is cut into {} shards: at least 1 is needed", shards);
    if (last == LastBatch::kDrop && samples < batch) {
        fail(ErrorKind::kUsage,
             "an epoch of {} samples is shorter than one batch of {}, and short batches are dropped: nothing would be "
             "trained; keep the last batch or make batches smaller",
             samples, batch);
    }
}

int64_t ShardPlan::steps_per_epoch() const {
    const int64_t whole = samples_ / batch_;
    return last_ == LastBatch::kKeep && samples_ % batch_ != 0 ? whole + 1 : whole;
}

int64_t ShardPlan::samples_per_epoch() const {
    return last_ == LastBatch::kKeep ? samples_ : samples_ / batch_ * batch_;
}

int64_t ShardPlan::batch_size(int64_t step) const {
    return std::min(batch_, samples_ - step * batch_);
}

PositionRange ShardPlan::shard(int64_t step, int v) const {
    const int64_t b = batch_size(step);
    const int64_t start = step * batch_;
    if (layout_ == Layout::kBatch) {
        const int64_t begin = multiply_divide(v, b, shards_);
        return {start + begin, multiply_divide(v + 1, b, shards_) - begin};
    }
    // Layout epoch: shard v owns positions [owned, owned_end) and gives one in each round of deals (deal k < qV goes to
    // shard k mod V); then the shards that own one more give it, in shard order.
    const int64_t owned = multiply_divide(v, samples_, shards_);
    const int64_t owned_end = multiply_divide(v + 1, samples_, shards_);
    const int64_t q = samples_ / shards_;
    // How many of the first k deals came from shard v. P(v) = floor(v N / V) = v q + floor(v (N - qV) / V), so owned -
    // v q shards before v are longer ones, and shard v's extra deal has that number among the extra ones.
    const auto dealt = [&](int64_t k) -> int64_t {
        if (k <= q * shards_) return k / shards_ + (k % shards_ > v ? 1 : 0);
        const int64_t extra_before = owned - v * q;
        const bool has_extra = owned_end - owned > q;
        return q + (has_extra && k - q * shards_ > extra_before ? 1 : 0);
    };
    const int64_t begin = dealt(start);
    return {owned + begin, dealt(start + b) - begin};
}

std::vector<int64_t> ShardPlan::shard_sizes(int64_t step) const {
    std::vector<int64_t> sizes;
    shard_sizes(step, sizes);
    return sizes;
}

void ShardPlan::shard_sizes(int64_t step, std::vector<int64_t>& out) const {
    out.resize(static_cast<size_t>(shards_));
    for (int v = 0; v < shards_; ++v) out[static_cast<size_t>(v)] = shard(step, v).count;
}

StepPosition step_position(int64_t update, int64_t steps_per_epoch) {
    const int64_t before = update - 1;
    return {before / steps_per_epoch, before % steps_per_epoch, update};
}

}  // namespace lockstep

#include "explain/worker_reading.hpp"

#include <algorithm>
#include <optional>

namespace lockstep {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

class Writer {
  public:
    Writer(const EpochOrders& orders, WorkerEpoch& epoch) : orders_(orders), epoch_(epoch) {}
    /// Position `position` of an epoch's order.
    void add(int64_t epoch, int64_t position, uint64_t seed_offset = 0) {
        if (!order_ || epoch != of_) {
            order_.emplace(orders_.seed + seed_offset, epoch, orders_.samples, orders_.shuffle, orders_.block);
            of_ = epoch;
        }
        epoch_.indices.push_back(order_->index(position));
        epoch_.positions.push_back(position);
    }

  private:
    const EpochOrders& orders_;
    WorkerEpoch& epoch_;
    std::optional<EpochOrder> order_;
    int64_t of_ = 0;
};

}  // namespace

WorkerEpoch read_by_worker(const WorkerRules& rules, const EpochOrders& orders, const ShardPlan& job, int worker,
                           int64_t epoch) {
    WorkerEpoch read;
    Writer writer(orders, read);
    const int64_t n = orders.samples;
    const int64_t workers = rules.workers;
    if (rules.reading == Reading::kWhole) {
        for (int64_t p = 0; p < n; ++p)
            writer.add(epoch, p, static_cast<uint64_t>(worker));  // each shuffles for itself
        return read;
    }
    if (rules.reading == Reading::kPaddedParts || rules.reading == Reading::kTrimmedParts) {
        // DistributedSampler: worker w has every W-th sample of the shuffled list from w on.
        const bool padded = rules.reading == Reading::kPaddedParts;
        const int64_t part = padded ? ceil_div(n, workers) : n / workers / rules.batch * rules.batch;
        for (int64_t i = 0; i < part; ++i) writer.add(epoch, (i * workers + worker) % n);
        return read;
    }
    if (rules.turns || !rules.wraps) {
        for (int64_t step = rules.turns ? worker : 0; step < job.steps_per_epoch(); step += rules.turns ? workers : 1) {
            const int64_t b = job.batch_size(step);
            const int64_t first = rules.turns ? 0 : worker * b / workers;
            const int64_t end = rules.turns ? b : (worker + 1) * b / workers;
            int64_t row = 0;
            for (int v = 0; v < job.shards(); ++v) {
                const PositionRange shard = job.shard(step, v);
                for (int64_t i = 0; i < shard.count; ++i, ++row) {
                    const bool own = rules.interleaved ? row % workers == worker : row >= first && row < end;
                    if (own) writer.add(epoch, shard.first + i);
                }
            }
        }
        return read;
    }
    // Whole batches for ever: a place in the stream of all epochs. A round is what all workers read at a time.
    const int64_t round = rules.batch * workers;
    const bool dealt = rules.reading == Reading::kDealt;
    const int64_t start = dealt ? worker * rules.batch : rules.reading == Reading::kShifted ? worker * n / workers : 0;
    const int64_t stride = dealt ? round : rules.batch;
    for (int64_t r = ceil_div(epoch * n, round); r < ceil_div((epoch + 1) * n, round); ++r) {
        for (int64_t i = 0; i < rules.batch; ++i) {
            const int64_t place = start + r * stride + i;
            writer.add(place / n, place % n);
        }
    }
    return read;
}

}  // namespace lockstep

// Runs the plan of every bucket. Buckets go in the same fixed order on all ranks and up to kReduceLanes of them are
// under way at once; the oldest unfinished bucket of the world is under way on every rank that has not finished it, so
// that something always moves.
#include <algorithm>
#include <chrono>
#include <memory>

#include "comm/patience.hpp"
#include "comm/reduce_lane.hpp"
#include "comm/reduce_plan.hpp"
#include "comm/reducer.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

class CanonicalReducer final : public Reducer {
  public:
    CanonicalReducer(Communicator& comm, int shards, ReduceLayout layout, int64_t bucket_bytes, int64_t small_bytes,
                     Adder adder, const ScratchMaker& scratch)
        : comm_(comm),
          shards_(shards),
          layout_(layout),
          small_bytes_(small_bytes),
          adder_(adder),
          scratch_(scratch),
          buckets_(make_buckets(layout.elements, bucket_bytes)),
          lanes_(std::min(static_cast<std::size_t>(kReduceLanes), buckets_.size())) {
        for (const Bucket& bucket : buckets_) {
            const Shape shape{bucket.end - bucket.begin, bucket.begin == 0 ? layout.lead : 0};
            const auto found = std::find(shapes_.begin(), shapes_.end(), shape);
            shape_of_bucket_.push_back(static_cast<std::size_t>(found - shapes_.begin()));
            if (found == shapes_.end()) shapes_.push_back(shape);
        }
        buckets_done_.resize(buckets_.size());
    }

    void begin(std::span<const int64_t> sizes, std::span<float* const> partial) override {
        plans_ = &plans_for(sizes);
        const int roots = plans_->front().roots;
        if (static_cast<int>(partial.size()) < std::max(roots, 1)) {
            fail(ErrorKind::kRuntime, "{} partial sums were given on rank {}, which has {}", partial.size(),
                 comm_.rank(), roots);
        }
        partial_.assign(partial.begin(), partial.end());
        started_ = finished_ = 0;
        first_final_ = layout_.elements + 1;
        lead_final_ = false;
        std::fill(buckets_done_.begin(), buckets_done_.end(), char{0});
    }

    void ready(int64_t first) override {
        first_final_ = first;
        poll();
    }

    void poll() override { advance(); }

    void finish() override {
        const auto start = std::chrono::steady_clock::now();
        first_final_ = 0;
        lead_final_ = true;
        Patience patience(comm_);
        while (finished_ < buckets_.size()) {
            if (advance()) {
                patience.restart();
            } else {
                patience.pause(lane_of(finished_).awaited_peer());
            }
        }
        comm_.settle();
        seconds_waiting_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    int64_t bytes_sent() const override { return bytes_sent_; }
    int64_t messages_sent() const override { return messages_sent_; }
    double seconds_waiting() const override { return seconds_waiting_; }

  private:
    struct Shape {
        int64_t elements;
        int64_t lead;
        bool operator==(const Shape&) const = default;
    };
    using Plans = std::vector<ReducePlan>;  // one for each shape
    struct Pattern {
        std::vector<char> filled;  // by shard: has samples
        std::unique_ptr<Plans> plans;
    };
    static constexpr std::size_t kPatterns = 256;  // known at once

    // Plans depend on which shards are empty, not on their sizes.
    const Plans& plans_for(std::span<const int64_t> sizes) {
        const auto same = [&](const Pattern& pattern) {
            return std::equal(sizes.begin(), sizes.end(), pattern.filled.begin(), pattern.filled.end(),
                              [](int64_t size, char filled) { return (size > 0) == (filled != 0); });
        };
        const auto known = std::find_if(patterns_.begin(), patterns_.end(), same);
        if (known != patterns_.end()) return *known->plans;
        if (patterns_.size() == kPatterns) patterns_.clear();
        Pattern pattern{{}, std::make_unique<Plans>()};
        for (const int64_t size : sizes) pattern.filled.push_back(size > 0 ? 1 : 0);
        for (const Shape& shape : shapes_) {
            pattern.plans->push_back(make_reduce_plan(shards_, comm_.rank(), comm_.size(), sizes,
                                                      shape.elements + shape.lead, shape.lead, small_bytes_));
            for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
                lanes_[lane].reserve(static_cast<int>(lane), pattern.plans->back(), scratch_);
            }
        }
        patterns_.push_back(std::move(pattern));
        return *patterns_.back().plans;
    }

    ReduceLane& lane_of(std::size_t bucket) { return lanes_[bucket % lanes_.size()]; }

    bool may_start(std::size_t bucket) {
        if (bucket == buckets_.size() || lane_of(bucket).busy()) return false;
        const int64_t begin = buckets_[bucket].begin;
        return begin >= first_final_ && (begin > 0 || lead_final_);
    }

    bool advance() {
        bool moved = false;
        for (std::size_t bucket = finished_; bucket < started_ || may_start(bucket); ++bucket) {
            if (bucket == started_) start(started_++);
            ReduceLane& lane = lane_of(bucket);
            if (!lane.busy() || static_cast<std::size_t>(lane.bucket()) != bucket) continue;
            moved |= lane.advance(comm_, adder_);
            if (lane.finished()) {
                bytes_sent_ += lane.plan().bytes_sent;
                messages_sent_ += lane.plan().messages;
                lane.free();
                buckets_done_[bucket] = 1;
                moved = true;
            }
        }
        while (finished_ < started_ && buckets_done_[finished_] != 0) ++finished_;
        return moved;
    }

    void start(std::size_t bucket) {
        const int64_t begin = buckets_[bucket].begin;
        lane_of(bucket).start(static_cast<int>(bucket), (*plans_)[shape_of_bucket_[bucket]], partial_,
                              begin == 0 ? 0 : layout_.lead + begin);
    }

    Communicator& comm_;
    int shards_;
    ReduceLayout layout_;
    int64_t small_bytes_;
    Adder adder_;
    ScratchMaker scratch_;
    std::vector<Bucket> buckets_;
    std::vector<ReduceLane> lanes_;  // bucket i goes in lane i mod their number
    std::vector<Shape> shapes_;
    std::vector<std::size_t> shape_of_bucket_;
    std::vector<Pattern> patterns_;

    const Plans* plans_ = nullptr;
    std::vector<float*> partial_;
    int64_t first_final_ = 0;
    bool lead_final_ = false;
    std::size_t started_ = 0;
    std::size_t finished_ = 0;        // all buckets before it are done
    std::vector<char> buckets_done_;  // later ones may be done, too
    int64_t bytes_sent_ = 0;
    int64_t messages_sent_ = 0;
    double seconds_waiting_ = 0;
};

}  // namespace

std::unique_ptr<Reducer> make_canonical_reducer(Communicator& comm, int shards, ReduceLayout layout,
                                                int64_t bucket_bytes, int64_t small_bytes, Adder adder,
                                                const ScratchMaker& scratch) {
    return std::make_unique<CanonicalReducer>(comm, shards, layout, bucket_bytes, small_bytes, adder, scratch);
}

std::shared_ptr<float> host_scratch(int64_t floats) {
    constexpr std::align_val_t kLine{64};
    const auto count = static_cast<std::size_t>(floats);
    std::shared_ptr<float> memory(static_cast<float*>(::operator new[](count * sizeof(float), kLine)),
                                  [](float* values) { ::operator delete[](values, kLine); });
    std::fill_n(memory.get(), count, 0.0F);
    return memory;
}

Adder plain_adder() {
    return {[](void*, float* dst, const float* left, const float* right, int64_t n) {
                for (int64_t i = 0; i < n; ++i) dst[i] = left[i] + right[i];
            },
            nullptr};
}

}  // namespace lockstep

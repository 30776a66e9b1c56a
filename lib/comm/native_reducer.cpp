// The transport's own all-reduce over locally summed gradients: the order of additions between ranks is the
// transport's, and differs with W. For comparison, and for those who want its speed. |native - canonical| <= 2 d eps
// sum_v |x_v| for each element, where d = V - 1 bounds the additions behind any one term in either order and eps =
// 2^-24.
#include <algorithm>
#include <chrono>

#include "comm/reduce_plan.hpp"
#include "comm/reducer.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

class NativeReducer final : public Reducer {
  public:
    NativeReducer(Communicator& comm, int shards, ReduceLayout layout, int64_t bucket_bytes, Adder adder,
                  const ScratchMaker& scratch)
        : comm_(comm),
          shards_(shards),
          layout_(layout),
          adder_(adder),
          scratch_(scratch),
          buckets_(make_buckets(layout.elements, bucket_bytes)) {}

    void begin(std::span<const int64_t> sizes, std::span<float* const> partial) override {
        const ShardRange range = shards_of_rank(shards_, comm_.rank(), comm_.size());
        const bool known = std::equal(sizes.begin(), sizes.end(), filled_.begin(), filled_.end(),
                                      [](int64_t size, char filled) { return (size > 0) == (filled != 0); });
        if (!known) {
            filled_.clear();
            for (const int64_t size : sizes) filled_.push_back(size > 0 ? 1 : 0);
            const std::vector<ShardRange> nodes = maximal_nodes(shards_, range, sizes);
            joins_ = join_program(shards_, nodes);
            roots_ = nodes.size();
        }
        if (partial.size() < std::max<std::size_t>(roots_, 1)) {
            fail(ErrorKind::kRuntime, "{} partial sums were given on rank {}, which has {}", partial.size(),
                 comm_.rank(), roots_);
        }
        partial_.assign(partial.begin(), partial.end());
        if (roots_ == 0) clear_gradient();
        joined_ = 0;
    }

    // What other ranks have to be awaited for is left to finish().
    void ready(int64_t first) override {
        for (; joined_ < buckets_.size() && buckets_[joined_].begin >= std::max(first, int64_t{1}); ++joined_)
            join(joined_);
    }

    void poll() override {}

    void finish() override {
        for (; joined_ < buckets_.size(); ++joined_) join(joined_);
        const auto start = std::chrono::steady_clock::now();
        for (const Bucket& bucket : buckets_) {
            comm_.all_reduce_native(std::span(partial_[0] + offset_of(bucket), length_of(bucket)));
            if (comm_.size() > 1) {
                bytes_sent_ += (bucket.end - bucket.begin) * static_cast<int64_t>(sizeof(float));
                messages_sent_ += 1;
            }
        }
        comm_.settle();
        seconds_waiting_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    int64_t bytes_sent() const override { return bytes_sent_; }
    int64_t messages_sent() const override { return messages_sent_; }
    double seconds_waiting() const override { return seconds_waiting_; }

  private:
    int64_t offset_of(const Bucket& bucket) const { return bucket.begin == 0 ? 0 : layout_.lead + bucket.begin; }
    std::size_t length_of(const Bucket& bucket) const {
        return static_cast<std::size_t>(bucket.end - bucket.begin + (bucket.begin == 0 ? layout_.lead : 0));
    }

    /// Of a rank without a sum of its own; its lead counts. Zeros are added, since the host may not see the memory.
    void clear_gradient() {
        int64_t most = 0;
        for (const Bucket& bucket : buckets_) most = std::max(most, bucket.end - bucket.begin);
        if (!zeros_) zeros_ = scratch_(std::max<int64_t>(most, 1));
        for (const Bucket& bucket : buckets_) {
            adder_(partial_[0] + layout_.lead + bucket.begin, zeros_.get(), zeros_.get(), bucket.end - bucket.begin);
        }
    }

    void join(std::size_t number) {
        const Bucket& bucket = buckets_[number];
        for (const JoinStep& step : joins_) {
            float* into = partial_[static_cast<std::size_t>(step.into)] + offset_of(bucket);
            adder_(into, into, partial_[static_cast<std::size_t>(step.from)] + offset_of(bucket),
                   static_cast<int64_t>(length_of(bucket)));
        }
    }

    Communicator& comm_;
    int shards_;
    ReduceLayout layout_;
    Adder adder_;
    ScratchMaker scratch_;
    std::vector<Bucket> buckets_;
    std::shared_ptr<float> zeros_;  // as many as the largest bucket has elements
    std::vector<char> filled_;      // by shard: has samples; of the pattern that joins_ belongs to
    std::vector<JoinStep> joins_;
    std::size_t roots_ = 0;
    std::vector<float*> partial_;
    std::size_t joined_ = 0;
    int64_t bytes_sent_ = 0;  // handed to the transport; what it makes of them is its own affair
    int64_t messages_sent_ = 0;
    double seconds_waiting_ = 0;
};

}  // namespace

std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, int shards, ReduceLayout layout, int64_t bucket_bytes,
                                             Adder adder, const ScratchMaker& scratch) {
    return std::make_unique<NativeReducer>(comm, shards, layout, bucket_bytes, adder, scratch);
}

}  // namespace lockstep

// Who reads what: every sample once in an epoch, in both layouts, for any numbers, and what no plan can be made of.
#include "data/shard_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace lockstep {
namespace {

std::vector<int64_t> batch_sizes(const ShardPlan& plan) {
    std::vector<int64_t> out;
    for (int64_t t = 0; t < plan.steps_per_epoch(); ++t) out.push_back(plan.batch_size(t));
    return out;
}

// What is wrong with a plan of `samples`, in words; empty if every sample is used at most once, exactly
// samples_per_epoch() of them, and in each step as many as its batch has.
std::string fault_of(const ShardPlan& plan, int64_t samples) {
    std::vector<int> used(static_cast<size_t>(samples), 0);
    int64_t total = 0;
    for (int64_t t = 0; t < plan.steps_per_epoch(); ++t) {
        int64_t in_step = 0;
        for (int v = 0; v < plan.shards(); ++v) {
            const PositionRange range = plan.shard(t, v);
            if (range.count < 0) return "a negative count";
            for (int64_t p = range.first; p < range.first + range.count; ++p) {
                if (p < 0 || p >= samples) return "a position outside";
                if (used[static_cast<size_t>(p)]++) return "a position twice";
            }
            in_step += range.count;
        }
        if (in_step != plan.batch_size(t)) return "a step of another size than its batch";
        total += in_step;
    }
    return total == plan.samples_per_epoch() ? "" : "another number of samples than the epoch's";
}

// Layout epoch by its words, with nothing computed: who is dealt which position number, deal after deal.
struct Deal {
    int shard;
    int64_t position;
};
std::vector<Deal> all_deals(int64_t samples, int shards) {
    std::vector<std::vector<int64_t>> hands(static_cast<size_t>(shards));
    for (int v = 0; v < shards; ++v) {
        for (int64_t p = v * samples / shards; p < (v + 1) * samples / shards; ++p)
            hands[static_cast<size_t>(v)].push_back(p);
    }
    std::vector<Deal> deals;
    for (size_t round = 0; deals.size() < static_cast<size_t>(samples); ++round) {
        for (int v = 0; v < shards; ++v) {
            const auto& hand = hands[static_cast<size_t>(v)];
            if (round < hand.size()) deals.push_back({v, hand[round]});
        }
    }
    return deals;
}

TEST_CASE("every sample is used exactly once in an epoch, whatever N, B, V, layout and last batch", "[shard_plan]") {
    for (int64_t n = 1; n <= 33; ++n) {
        for (int64_t b = 1; b <= n + 2; ++b) {
            for (int v = 1; v <= 12; ++v) {
                for (const Layout layout : {Layout::kBatch, Layout::kEpoch}) {
                    for (const LastBatch last : {LastBatch::kKeep, LastBatch::kDrop}) {
                        if (last == LastBatch::kDrop && n < b) continue;
                        const std::string fault = fault_of(ShardPlan(n, b, v, layout, last), n);
                        if (!fault.empty()) FAIL(fault << " at N = " << n << ", B = " << b << ", V = " << v);
                    }
                }
            }
        }
    }
}

TEST_CASE("layout batch cuts each batch into contiguous shards, in order", "[shard_plan]") {
    const ShardPlan plan(1003, 96, 8, Layout::kBatch, LastBatch::kKeep);
    for (int64_t t = 0; t < plan.steps_per_epoch(); ++t) {
        int64_t next = t * 96;
        for (int v = 0; v < 8; ++v) {
            const PositionRange range = plan.shard(t, v);
            CHECK(range.first == next);
            CHECK(range.first == t * 96 + v * plan.batch_size(t) / 8);
            next += range.count;
        }
        CHECK(next == std::min<int64_t>((t + 1) * 96, 1003));
    }
}

TEST_CASE("layout epoch deals from the shards in turn, as playing it out shows", "[shard_plan]") {
    for (int64_t n = 1; n <= 40; ++n) {
        for (int v = 1; v <= 13; ++v) {
            const std::vector<Deal> deals = all_deals(n, v);
            for (int64_t b = 1; b <= n + 1; ++b) {
                const ShardPlan plan(n, b, v, Layout::kEpoch, LastBatch::kKeep);
                for (int64_t t = 0; t < plan.steps_per_epoch(); ++t) {
                    std::vector<PositionRange> expected(static_cast<size_t>(v));
                    for (int64_t k = t * b; k < std::min(n, (t + 1) * b); ++k) {
                        const Deal& deal = deals[static_cast<size_t>(k)];
                        PositionRange& range = expected[static_cast<size_t>(deal.shard)];
                        if (range.count++ == 0) range.first = deal.position;
                        REQUIRE(range.first + range.count - 1 == deal.position);  // a shard's part is contiguous
                    }
                    for (int s = 0; s < v; ++s) {
                        const PositionRange got = plan.shard(t, s);
                        const PositionRange& want = expected[static_cast<size_t>(s)];
                        if (got.count != want.count || (want.count > 0 && got.first != want.first)) {
                            FAIL("N = " << n << ", B = " << b << ", V = " << v << ", step " << t << ", shard " << s);
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("the two layouts read different positions", "[shard_plan]") {
    const ShardPlan by_batch(64, 16, 4, Layout::kBatch, LastBatch::kKeep);
    const ShardPlan by_epoch(64, 16, 4, Layout::kEpoch, LastBatch::kKeep);
    CHECK(by_batch.shard(0, 1) == PositionRange{4, 4});
    CHECK(by_epoch.shard(0, 1) == PositionRange{16, 4});
}

TEST_CASE("a short last batch is kept, never padded or repeated", "[shard_plan]") {
    CHECK(batch_sizes(ShardPlan(10, 4, 2, Layout::kBatch, LastBatch::kKeep)) == std::vector<int64_t>{4, 4, 2});
    CHECK(batch_sizes(ShardPlan(10, 4, 2, Layout::kBatch, LastBatch::kDrop)) == std::vector<int64_t>{4, 4});
    CHECK(batch_sizes(ShardPlan(3, 128, 8, Layout::kBatch, LastBatch::kKeep)) == std::vector<int64_t>{3});
    CHECK(batch_sizes(ShardPlan(100, 20, 4, Layout::kEpoch, LastBatch::kKeep)) == std::vector<int64_t>(5, 20));

    const ShardPlan medium(858, 32, 4, Layout::kBatch, LastBatch::kKeep);
    CHECK(medium.steps_per_epoch() == 27);
    CHECK(medium.batch_size(26) == 26);
    CHECK(medium.shard_sizes(26) == std::vector<int64_t>{6, 7, 6, 7});

    const ShardPlan large(60000, 128, 8, Layout::kBatch, LastBatch::kKeep);
    CHECK(large.steps_per_epoch() == 469);
    CHECK(large.batch_size(468) == 96);
    CHECK(large.samples_per_epoch() == 60000);

    const ShardPlan dropping(60000, 128, 8, Layout::kBatch, LastBatch::kDrop);
    CHECK(dropping.steps_per_epoch() == 468);
    CHECK(dropping.samples_per_epoch() == 468 * 128);
}

TEST_CASE("more shards than samples leave shards empty", "[shard_plan]") {
    const ShardPlan plan(3, 3, 7, Layout::kBatch, LastBatch::kKeep);
    CHECK(plan.shard_sizes(0) == std::vector<int64_t>{0, 0, 1, 0, 1, 0, 1});
}

TEST_CASE("a billion samples do not overflow", "[shard_plan]") {
    constexpr int64_t kSamples = int64_t{1} << 50;
    const ShardPlan plan(kSamples, 1 << 20, 1 << 20, Layout::kEpoch, LastBatch::kKeep);
    CHECK(plan.shard(0, (1 << 20) - 1).first == kSamples - (int64_t{1} << 30));
    CHECK(plan.steps_per_epoch() == int64_t{1} << 30);
    CHECK(plan.shard(plan.steps_per_epoch() - 1, (1 << 20) - 1) == PositionRange{kSamples - 1, 1});
}

TEST_CASE("dropping the only batch is refused, and so are nonsensical sizes", "[shard_plan]") {
    CHECK_THROWS_AS(ShardPlan(3, 4, 1, Layout::kBatch, LastBatch::kDrop), Error);
    CHECK_THROWS_AS(ShardPlan(0, 4, 1, Layout::kBatch, LastBatch::kKeep), Error);
    CHECK_THROWS_AS(ShardPlan(4, 0, 1, Layout::kBatch, LastBatch::kKeep), Error);
    CHECK_THROWS_AS(ShardPlan(4, 4, 0, Layout::kBatch, LastBatch::kKeep), Error);
}

TEST_CASE("an update number tells its epoch and step", "[shard_plan]") {
    CHECK(step_position(1, 469).epoch == 0);
    CHECK(step_position(1, 469).step == 0);
    CHECK(step_position(469, 469).step == 468);
    CHECK(step_position(470, 469).epoch == 1);
    CHECK(step_position(470, 469).step == 0);
    CHECK(step_position(470, 469).update == 470);
}

}  // namespace
}  // namespace lockstep

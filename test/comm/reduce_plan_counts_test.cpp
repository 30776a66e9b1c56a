// What a step sends: the method chosen, bytes and messages, and where buckets are cut.
#include <catch2/catch.hpp>

#include "comm/plan_simulation.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr int64_t kSmall = 32 * 1024;
constexpr int64_t kMlp = 535818;  // 784-512-256-10

ReducePlan plan(int shards, int rank, int world, int64_t gradients) {
    const std::vector<int64_t> sizes(static_cast<size_t>(shards), 16);
    return make_reduce_plan(shards, rank, world, sizes, gradients + 16, 16, kSmall);
}

int64_t most_bytes(int shards, int world, int64_t gradients) {
    int64_t most = 0;
    for (int r = 0; r < world; ++r) most = std::max(most, plan(shards, r, world, gradients).bytes_sent);
    return most;
}

}  // namespace

TEST_CASE("the method follows from V, W, the size and who has samples") {
    struct Row {
        int shards, world;
        int64_t gradients;
        ReduceMethod method;
    };
    for (const Row& row : {Row{8, 1, kMlp, ReduceMethod::kAlone}, Row{8, 2, kMlp, ReduceMethod::kHalving},
                           Row{8, 8, kMlp, ReduceMethod::kHalving}, Row{8, 3, kMlp, ReduceMethod::kNodes},
                           Row{8, 16, kMlp, ReduceMethod::kNodes}, Row{12, 4, kMlp, ReduceMethod::kNodes},
                           Row{8, 2, 8192, ReduceMethod::kDoubling}, Row{8, 2, 8193, ReduceMethod::kHalving},
                           Row{12, 4, 8192, ReduceMethod::kNodes}}) {
        INFO("V " << row.shards << " W " << row.world << " gradients " << row.gradients);
        CHECK(plan(row.shards, 0, row.world, row.gradients).method == row.method);
    }
    const std::vector<int64_t> one_rank_empty{1, 1, 0, 0};
    CHECK(make_reduce_plan(4, 0, 2, one_rank_empty, kMlp, 0, kSmall).method == ReduceMethod::kNodes);
    const std::vector<int64_t> some_shards_empty{0, 1, 1, 0};
    CHECK(make_reduce_plan(4, 0, 2, some_shards_empty, kMlp, 0, kSmall).method == ReduceMethod::kHalving);
}

TEST_CASE("halving between two ranks sends the gradient once, in two messages") {
    for (int rank = 0; rank < 2; ++rank) {
        CHECK(plan(8, rank, 2, kMlp).bytes_sent == 2143272);
        CHECK(plan(8, rank, 2, kMlp).messages == 2);
    }
}

TEST_CASE("halving costs a ring's bytes in 2 log2(W) messages") {
    for (const int world : {2, 4, 8, 16, 32, 64}) {
        const int64_t gradients = 1 << 20;
        INFO("W " << world);
        CHECK(most_bytes(64, world, gradients) == ring_bytes(gradients * 4, world));
        CHECK(plan(64, world - 1, world, gradients).messages == 2 * std::countr_zero(static_cast<unsigned>(world)));
    }
}

TEST_CASE("doubling sends the whole bucket log2(W) times") {
    const ReducePlan small = plan(8, 3, 8, 1000);
    CHECK(small.bytes_sent == 3 * 4000);
    CHECK(small.messages == 3);
}

TEST_CASE("64 shards on 3 ranks cost 3.0 times a ring's bytes") {
    const int64_t gradients = 3 << 20;
    const double ratio =
        static_cast<double>(most_bytes(64, 3, gradients)) / static_cast<double>(ring_bytes(gradients * 4, 3));
    CHECK(ratio == Approx(3.0).epsilon(1e-4));
}

TEST_CASE("an idle rank sends its flags and its finished slice") {
    const ReducePlan idle = plan(2, 0, 4, 64000);
    CHECK(idle.roots == 0);
    CHECK(idle.messages == 1 + 3);
    CHECK(idle.bytes_sent == 3 * 4 * 16000);
}

TEST_CASE("a ring's bytes are 2 (W-1)/W of the gradient, rounded up") {
    CHECK(ring_bytes(2143272, 1) == 0);
    CHECK(ring_bytes(2143272, 2) == 2143272);
    CHECK(ring_bytes(2143272, 4) == 3214908);
    CHECK(ring_bytes(10, 3) == 14);
}

TEST_CASE("buckets cover the gradient from its end, in whole cache lines of at most their size") {
    for (const int64_t elements : {0, 1, 15, 16, 17, 255, 256, 257, 1000, 535818}) {
        for (const int64_t bytes : {4, 64, 1000, 1024, 65536, 4 << 20, 64 << 20}) {
            INFO("elements " << elements << " bytes " << bytes);
            const auto buckets = make_buckets(elements, bytes);
            REQUIRE(!buckets.empty());
            CHECK(buckets.front().end == elements);
            CHECK(buckets.back().begin == 0);
            for (size_t i = 0; i < buckets.size(); ++i) {
                const int64_t size = buckets[i].end - buckets[i].begin;
                REQUIRE(size * 4 <= std::max(bytes, int64_t{64}));
                if (i > 0) {
                    REQUIRE(buckets[i].end == buckets[i - 1].begin);
                    REQUIRE(size % 16 == 0);
                    REQUIRE(size > 0);
                }
            }
        }
    }
    CHECK(make_buckets(535818, 4 << 20) == std::vector<Bucket>{{0, 535818}});
    CHECK(make_buckets(40, 64) == std::vector<Bucket>{{32, 40}, {16, 32}, {0, 16}});
}

// How `verify` splits a job into worlds: which run when, on which ranks, and with which settings.
#include "train/world_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

using namespace lockstep;

namespace {

WorldMeans means_of(int ranks, int threads = 2) {
    return {ranks, threads, {"avx512", "avx2"}, 2'000'000};
}

}  // namespace

TEST_CASE("a list of worlds is read, and nothing else is taken for one") {
    CHECK(parse_worlds("1,2,4", "--worlds") == std::vector<int>{1, 2, 4});
    CHECK(parse_worlds("7", "--worlds") == std::vector<int>{7});
    for (const char* text : {"", "0", "1,0", "-1", "1,", ",1", "1, 2", "1.5", "x", "4097", "99999999999"}) {
        INFO(text);
        CHECK_THROWS_WITH(parse_worlds(text, "--worlds"), Catch::StartsWith("--worlds: worlds are numbers of ranks"));
    }
    CHECK(worlds_to_verify(1) == std::vector<int>{1, 1});
    CHECK(worlds_to_verify(2) == std::vector<int>{1, 2});
    CHECK(worlds_to_verify(5) == std::vector<int>{1, 2, 3, 4, 5});
}

TEST_CASE("no two worlds share a rank at a time, and the reference runs in the first round") {
    for (int ranks = 1; ranks <= 9; ++ranks) {
        std::vector<std::vector<int>> lists{worlds_to_verify(ranks), {ranks, 1}, {3, 1, 1, 2, 8}, {12, 5, 1, 2, 2}};
        for (const std::vector<int>& worlds : lists) {
            const std::vector<WorldCast> casts = cast_worlds(worlds, Config(), means_of(ranks));
            REQUIRE(casts.size() == worlds.size());
            std::map<int, std::set<int>> taken;  // ranks, by round
            int last_round = 0;
            for (std::size_t i = 0; i < casts.size(); ++i) {
                REQUIRE(casts[i].world == worlds[i]);
                REQUIRE(casts[i].in_process == (worlds[i] > ranks));
                last_round = std::max(last_round, casts[i].round);
                for (int rank = casts[i].first; rank < casts[i].first + casts[i].width(); ++rank) {
                    REQUIRE(rank < ranks);
                    REQUIRE(casts[i].has(rank));
                    REQUIRE(taken[casts[i].round].insert(rank).second);
                }
            }
            REQUIRE(casts.front().round == 0);
            REQUIRE(static_cast<int>(taken.size()) == last_round + 1);
        }
    }
}

TEST_CASE("worlds run side by side where ranks allow") {
    const auto rounds = [](int ranks) {
        int most = 0;
        for (const WorldCast& cast : cast_worlds(worlds_to_verify(ranks), Config(), means_of(ranks)))
            most = std::max(most, cast.round + 1);
        return most;
    };
    CHECK(rounds(1) == 2);
    CHECK(rounds(2) == 2);
    CHECK(rounds(3) == 2);
    CHECK(rounds(4) == 3);
    CHECK(rounds(5) == 3);
    CHECK(rounds(8) == 5);
    // 36 ranks in all for 8: no rule needs fewer than 5 rounds.
}

TEST_CASE("the reference has the config's settings, every other world has others") {
    Config config;
    config.device.graphs = true;
    for (const int threads : {1, 2, 3, 16}) {
        config.device.streams = threads - 1;
        for (const std::vector<int>& worlds : {std::vector<int>{1, 1}, {1, 2, 3, 4}, {2, 5, 8}}) {
            const std::vector<WorldCast> casts = cast_worlds(worlds, config, means_of(4, threads));
            const WorldCast& reference = casts.front();
            CHECK(reference.threads == threads);
            CHECK(reference.bucket_kib == config.reduce.bucket_kib);
            CHECK(reference.small_kib == config.reduce.small_kib);
            CHECK(reference.isa == "avx512");
            CHECK(reference.streams == config.device.streams);
            for (std::size_t i = 1; i < casts.size(); ++i) {
                CHECK((casts[i].in_process || casts[i].threads != reference.threads));
                CHECK(casts[i].threads >= 1);
                CHECK(casts[i].streams >= 1);
                CHECK(casts[i].streams != config.device.streams);
                CHECK(casts[i].bucket_kib != reference.bucket_kib);
                CHECK(casts[i].small_kib != reference.small_kib);
            }
            CHECK(casts[1].isa == "avx2");
            CHECK((reference.graphs && !casts[1].graphs));
        }
    }
    config.device.isa = "avx2";
    config.device.threads = 5;
    const std::vector<int> twice{1, 1};
    const std::vector<WorldCast> casts = cast_worlds(twice, config, means_of(1));
    CHECK(casts[0].isa == "avx2");
    CHECK(casts[0].threads == 5);
    CHECK(casts[1].isa == "avx512");
    config.reduce.algorithm = "native";
    CHECK(cast_worlds(twice, config, means_of(1))[1].bucket_kib == config.reduce.bucket_kib);
    CHECK(cast_worlds(twice, config, means_of(1))[1].small_kib == config.reduce.small_kib);
}

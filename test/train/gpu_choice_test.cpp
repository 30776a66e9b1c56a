// Which GPU each rank takes, and what carries sums: on made-up machines.
#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "train/gpu_choice.hpp"

using namespace lockstep;
using Catch::Contains;

namespace {

const std::vector<std::string> kFour{"0000:10:00.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0"};

RankDevice on(const std::string& host, const std::vector<std::string>& visible) {
    return {host, true, visible, true};
}
RankDevice on_cpu(const std::string& host) {
    return {host, false, {}, false};
}

std::vector<int> devices(const std::vector<RankDevice>& ranks, const std::string& transport = "auto") {
    std::vector<int> chosen;
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
        chosen.push_back(choose_gpu(ranks, rank, transport).device);
    }
    return chosen;
}

std::string refusal(const std::vector<RankDevice>& ranks) {
    try {
        choose_gpu(ranks, 0, "nccl");
    } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::kUsage);
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("the ranks of each host take its GPUs in turn and speak by NCCL") {
    const std::vector<RankDevice> ranks{on("a", kFour), on("a", kFour), on("b", kFour), on("b", kFour), on("a", kFour)};
    CHECK(devices(ranks) == std::vector<int>{0, 1, 0, 1, 2});
    for (int rank = 0; rank < 5; ++rank) {
        CHECK(choose_gpu(ranks, rank, "auto").nccl);
        CHECK(choose_gpu(ranks, rank, "auto").warning.empty());
        CHECK_FALSE(choose_gpu(ranks, rank, "staged").nccl);
    }
}

TEST_CASE("a rank that sees one GPU of its own takes that one") {
    std::vector<RankDevice> ranks;
    for (const std::string& gpu : kFour) ranks.push_back(on("a", {gpu}));
    CHECK(devices(ranks) == std::vector<int>{0, 0, 0, 0});
    CHECK(choose_gpu(ranks, 3, "nccl").nccl);
}

TEST_CASE("CPU ranks do not count for the GPUs, and sums go through host memory") {
    const std::vector<RankDevice> ranks{on_cpu("a"), on("a", kFour), on_cpu("a"), on("a", kFour)};
    CHECK(devices(ranks) == std::vector<int>{-1, 0, -1, 1});
    CHECK_FALSE(choose_gpu(ranks, 1, "auto").nccl);
    CHECK_THAT(refusal(ranks), Contains("rank 0 computes on a CPU"));
}

TEST_CASE("a job of CPU and GPU ranks warns of it: a rank whose GPU fails would else slow all down unseen") {
    const std::vector<RankDevice> ranks{on_cpu("a"), on("a", kFour), on_cpu("a"), on("a", kFour)};
    for (const char* transport : {"auto", "staged"}) {
        CHECK_THAT(choose_gpu(ranks, 0, transport).warning,
                   Contains("ranks 0, 2 compute on CPUs and 2 ranks on GPUs: every step takes as long as the slowest"));
    }
    const std::vector<RankDevice> one{on("a", {kFour[0]}), on_cpu("b"), on("a", {kFour[0]})};
    CHECK_THAT(choose_gpu(one, 2, "auto").warning, Contains("ranks 0, 2 share GPU"));
    CHECK_THAT(choose_gpu(one, 2, "auto").warning, Contains("; rank 1 computes on a CPU and 2 ranks on GPUs"));
    CHECK(choose_gpu(std::vector<RankDevice>{on_cpu("a"), on_cpu("a")}, 0, "auto").warning.empty());
}

TEST_CASE("two ranks on one GPU go through host memory with a warning, and NCCL is refused") {
    const std::vector<std::string> two{kFour[0], kFour[1]};
    const std::vector<RankDevice> more(4, on("a", two));
    CHECK(devices(more) == std::vector<int>{0, 1, 0, 1});
    CHECK_FALSE(choose_gpu(more, 0, "auto").nccl);
    CHECK_THAT(choose_gpu(more, 3, "auto").warning,
               Contains("ranks 0, 2 share GPU 0000:10:00.0 of a, and so it is on 1 more"));
    CHECK(choose_gpu(more, 3, "staged").warning.empty());
    CHECK_THAT(refusal(more), Contains("ranks 0, 2 share GPU 0000:10:00.0 of a"));
    // Both see one GPU, under different numbers.
    const std::vector<RankDevice> hidden{on("a", {kFour[0]}), on("a", {kFour[0], kFour[1]})};
    CHECK_THAT(refusal(hidden), Contains("ranks 0, 1 share GPU"));
    // The same address on another host is another GPU.
    CHECK(choose_gpu(std::vector<RankDevice>{on("a", {kFour[0]}), on("b", {kFour[0]})}, 0, "auto").nccl);
}

TEST_CASE("a build without NCCL is named") {
    std::vector<RankDevice> ranks(2, on("a", kFour));
    ranks[1].nccl = false;
    CHECK_FALSE(choose_gpu(ranks, 0, "auto").nccl);
    CHECK_THAT(refusal(ranks), Contains("rank 1's build of Lockstep is without NCCL"));
}

TEST_CASE("one rank alone, and ranks on CPUs, need no NCCL") {
    CHECK_FALSE(choose_gpu(std::vector<RankDevice>{on("a", kFour)}, 0, "nccl").nccl);
    CHECK(choose_gpu(std::vector<RankDevice>{on("a", kFour)}, 0, "nccl").device == 0);
    CHECK(devices({on_cpu("a"), on_cpu("a")}, "nccl") == std::vector<int>{-1, -1});
}

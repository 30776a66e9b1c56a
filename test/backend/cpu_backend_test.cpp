// What the CPU backend alone promises: its instruction sets, threads, workspaces and huge pages.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/cpu/cpu_context.hpp"
#include "backend/cpu/cpu_isa.hpp"
#include "backend/cpu/reference.hpp"
#include "core/error.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a backend says what it runs on") {
    CHECK(make_cpu_backend({Isa::kScalar, 1})->name() == "cpu scalar, 1 thread");
    CHECK(make_cpu_backend({Isa::kScalar, 3})->name() == "cpu scalar, 3 threads");
    const std::string best = isa_name(available_isas().front());
    CHECK(make_cpu_backend({Isa::kAuto, 2})->name() == "cpu " + best + ", 2 threads");
}

TEST_CASE("the instruction set is the best one, or the one asked for, or one clear refusal") {
    const Isa server[] = {Isa::kAvx512, Isa::kAvx2, Isa::kScalar}, old[] = {Isa::kScalar};
    CHECK(choose_isa(Isa::kAuto, server) == Isa::kAvx512);
    CHECK(choose_isa(Isa::kAvx2, server) == Isa::kAvx2);
    CHECK(choose_isa(Isa::kScalar, old) == Isa::kScalar);
    CHECK_THROWS_WITH(choose_isa(Isa::kNeon, server),
                      "device.isa = \"neon\": this CPU does not have it; it has: avx512, avx2, scalar (or \"auto\")");
    CHECK_THROWS_WITH(choose_isa(Isa::kAuto, old), Catch::Contains("device.isa = \"scalar\""));
    try {
        choose_isa(Isa::kAvx2, old);
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kUsage);
    }
    CHECK_THROWS_AS(make_cpu_backend({Isa::kScalar, 0}), Error);
    CHECK(available_isas().back() == Isa::kScalar);
}

TEST_CASE("memory of 2 MiB and more lies on a border of 2 MiB, for huge pages") {
    const auto backend = make_cpu_backend({});
    for (const std::size_t bytes : {std::size_t{2} << 20, (std::size_t{5} << 20) + 4}) {
        const auto buffer = backend->allocate(bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % (std::size_t{2} << 20) == 0);
        std::fill_n(buffer->data(), bytes, std::byte{1});
    }
}

TEST_CASE("items are dealt to single threads where that is even or nearly so, and else shared by all threads") {
    const auto one = make_cpu_backend({Isa::kScalar, 1}), three = make_cpu_backend({Isa::kScalar, 3});
    CHECK(one->split_items(8) == std::vector<ShardRange>{{0, 8}});
    CHECK(three->split_items(0) == std::vector<ShardRange>{{0, 0}});
    CHECK(three->split_items(2) == std::vector<ShardRange>{{0, 2}});
    CHECK(three->split_items(8) == std::vector<ShardRange>{{0, 8}});
    CHECK(three->split_items(6) == std::vector<ShardRange>{{0, 2}, {2, 4}, {4, 6}});
    for (int count = 9; count < 40; ++count) {
        const auto ranges = three->split_items(count);
        REQUIRE(ranges.size() == 3);
        CHECK((ranges[0].begin == 0 && ranges[2].end == count));
        for (int i = 0; i < 3; ++i) {
            CHECK((ranges[i].size() >= count / 3 && ranges[i].size() <= count / 3 + 1));
            if (i > 0) CHECK(ranges[i].begin == ranges[i - 1].end);
        }
    }
}

TEST_CASE("each range runs on the stream of its own number") {
    for (int threads = 1; threads <= 3; ++threads) {
        const auto backend = make_cpu_backend({Isa::kScalar, threads});
        CHECK(backend->streams() == threads);
        const auto ranges = backend->split_items(12);
        std::vector<std::atomic<int>> stream_of(ranges.size());
        backend->for_each_range(
            ranges, [&](Stream& stream, int i) { stream_of[static_cast<std::size_t>(i)] = stream.index(); });
        for (std::size_t i = 0; i < ranges.size(); ++i) CHECK(stream_of[i] == static_cast<int>(i));
    }
}

TEST_CASE("the square sum of more blocks than the scratch holds at once goes on in order") {
    Random random;
    const int64_t n = 4096 * 4096 + 70000;
    std::vector<float> gradient(static_cast<std::size_t>(n));
    for (float& g : gradient) g = static_cast<float>(random.engine()() >> 8) * 1e-5F;
    const auto one = make_cpu_backend({Isa::kAuto, 1}), two = make_cpu_backend({Isa::kAuto, 2});
    std::vector<double> blocks(static_cast<std::size_t>((n + kSquareBlock - 1) / kSquareBlock));
    reference::block_square_sums(n, gradient.data(), gradient.data(), 3, 0, blocks.data());
    const double expected = std::accumulate(blocks.begin(), blocks.end(), 0.0);
    CHECK(one->square_sum(one->main(), n, gradient.data(), gradient.data(), 3, 0) == expected);
    CHECK(two->square_sum(two->main(), n, gradient.data(), gradient.data(), 3, 0) == expected);
}

TEST_CASE("threads sum rows in rounds where the sums of all blocks together are long, and get the bits of one thread") {
    constexpr int kChannels = 1000;
    constexpr int64_t kRows = 40 * 256 + 3;  // more blocks than fit one round, the last one short
    Floats x(kRows * kChannels), statistics(2 * kChannels, 1.0F), expected(2 * kChannels), sums(2 * kChannels);
    for (int64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 10007) * 0.37F - 1000.0F;
    const auto one = make_cpu_backend({Isa::kAuto, 1}), two = make_cpu_backend({Isa::kAuto, 2});
    one->batch_norm_sums(one->main(), kRows, kChannels, x.data(), statistics.data(), x.data(), nullptr,
                         expected.data());
    two->batch_norm_sums(two->main(), kRows, kChannels, x.data(), statistics.data(), x.data(), nullptr, sums.data());
    CHECK(same_bytes(sums, expected));
    one->batch_moments(one->main(), kRows, kChannels, x.data(), expected.data());
    two->batch_moments(two->main(), kRows, kChannels, x.data(), sums.data());
    CHECK(same_bytes(sums, expected));
}

TEST_CASE("workspaces are one for each thread, aligned, and only ever grow") {
    CpuContext context(Isa::kScalar, 3);
    context.reserve_workspace(1000);
    context.reserve_workspace(10);
    for (int i = 0; i < 3; ++i) {
        CHECK(reinterpret_cast<std::uintptr_t>(context.workspace(i)) % 64 == 0);
        std::fill_n(context.workspace(i), 1000, std::byte{1});
        for (int k = 0; k < i; ++k) CHECK(context.workspace(i) != context.workspace(k));
    }
    CpuStream main(0, &context.pool()), second(1, nullptr);
    CHECK((main.parts() == 3 && main.workspace_index(2) == 2));
    CHECK((second.parts() == 1 && second.workspace_index(0) == 1));
    second.parallel([](int part, int parts) { CHECK((part == 0 && parts == 1)); });
}

TEST_CASE("backends of different instruction sets work at the same time in one process") {
    Random random;
    INFO("seed " << random.seed());
    const int64_t n = 60000;
    const Floats x(random, n);
    std::vector<Floats> results;
    std::vector<std::thread> ranks;
    const auto isas = available_isas();
    for (std::size_t i = 0; i < isas.size(); ++i) results.emplace_back(n);
    for (std::size_t i = 0; i < isas.size(); ++i) {
        ranks.emplace_back([&, i] {
            const auto backend = make_cpu_backend({isas[i], 2});
            backend->softmax(backend->main(), static_cast<int>(n) / 10, 10, x.data(), results[i].data());
        });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const Floats& result : results) CHECK(same_bytes(result, results.front()));
}

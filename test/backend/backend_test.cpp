#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include "backend/cpu/cpu_context.hpp"
#include "backend/cpu/cpu_isa.hpp"
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

TEST_CASE("memory is zeroed and aligned: to 64 bytes, and to 2 MiB where it is large") {
    const auto backend = make_cpu_backend({});
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{2} << 20, (std::size_t{5} << 20) + 4}) {
        INFO(bytes << " bytes");
        const auto buffer = backend->allocate(bytes);
        CHECK(buffer->bytes() == bytes);
        const std::size_t alignment = bytes >= (std::size_t{2} << 20) ? std::size_t{2} << 20 : 64;
        CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % alignment == 0);
        CHECK(std::all_of(buffer->data(), buffer->data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
        std::fill_n(buffer->data(), bytes, std::byte{1});
    }
    const CpuOptions options{Isa::kScalar, 1};
    CHECK_THROWS_WITH(make_cpu_backend(options)->allocate(std::size_t{1} << 60), Catch::Contains("out of memory"));
}

TEST_CASE("host and device memory are copied to and fro") {
    const auto backend = make_cpu_backend({});
    const auto buffer = backend->allocate(64);
    const float from[] = {1, 2, 3};
    float to[3] = {};
    backend->upload(backend->main(), from, buffer->data(), sizeof(from));
    backend->download(backend->main(), buffer->data(), to, sizeof(to));
    backend->synchronize();
    CHECK((to[0] == 1 && to[1] == 2 && to[2] == 3));
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

TEST_CASE("each range runs once, on a stream of its own number, and a lone range on the main stream") {
    for (int threads = 1; threads <= 3; ++threads) {
        const auto backend = make_cpu_backend({Isa::kScalar, threads});
        CHECK(backend->streams() == threads);
        CHECK(backend->main().index() == 0);
        for (const int count : {1, 2, 3, 12}) {
            const auto ranges = backend->split_items(count);
            std::vector<std::atomic<int>> runs(ranges.size());
            std::vector<Stream*> streams(ranges.size());
            backend->for_each_range(ranges, [&](Stream& stream, int i) {
                ++runs[static_cast<std::size_t>(i)];
                streams[static_cast<std::size_t>(i)] = &stream;
            });
            for (std::size_t i = 0; i < ranges.size(); ++i) {
                CHECK(runs[i] == 1);
                CHECK(streams[i]->index() == static_cast<int>(i));
                CHECK((streams[i] == &backend->main()) == (ranges.size() == 1));
            }
        }
        backend->for_each_range({}, [](Stream&, int) { FAIL("there was nothing to run"); });
    }
}

TEST_CASE("what a range throws reaches the caller") {
    const auto backend = make_cpu_backend({Isa::kScalar, 2});
    const auto ranges = backend->split_items(4);
    CHECK_THROWS_AS(backend->for_each_range(ranges,
                                            [](Stream&, int i) {
                                                if (i == 1) throw std::runtime_error("shard");
                                            }),
                    std::runtime_error);
    int ran = 0;
    backend->for_each_range(backend->split_items(1), [&](Stream&, int) { ++ran; });
    CHECK(ran == 1);
}

TEST_CASE("an operation on a single-thread stream gives the bytes that the main stream gives") {
    Random random;
    INFO("seed " << random.seed());
    const int64_t n = 50000;
    const Floats left(random, 4 * n), right(random, 4 * n);
    for (const auto& [name, each] : every_backend()) {
        Backend* const backend = each.get();  // clang 14 captures no structured binding
        INFO(name);
        Floats whole(4 * n), parts(4 * n);
        backend->add(backend->main(), 4 * n, left.data(), right.data(), whole.data());
        double sums[4] = {};
        const auto ranges = backend->split_items(12);
        backend->for_each_range(ranges, [&](Stream& stream, int i) {
            for (int v = ranges[static_cast<std::size_t>(i)].begin; v < ranges[static_cast<std::size_t>(i)].end; ++v) {
                if (v >= 4) continue;
                const int64_t at = v * n;
                backend->add(stream, n, left.data() + at, right.data() + at, parts.data() + at);
                sums[v] = backend->square_sum(stream, n, left.data() + at, right.data() + at, 3, 0.5F);
            }
        });
        CHECK(same_bytes(whole, parts));
        for (int v = 0; v < 4; ++v) {
            CHECK(sums[v] ==
                  backend->square_sum(backend->main(), n, left.data() + v * n, right.data() + v * n, 3, 0.5F));
        }
    }
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

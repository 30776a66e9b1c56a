// What every backend promises beside its operations: memory, copies, streams and the order between them.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>

#include "core/error.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr std::size_t kHuge = std::size_t{1} << 60;

bool all_zero(std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

TEST_CASE("memory is zeroed, aligned to 64 bytes, and of the size asked for") {
    for (const NamedBackend& on : every_backend(1)) {
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, (std::size_t{5} << 20) + 4}) {
            INFO(on.name << ", " << bytes << " bytes");
            const auto device = on->allocate(bytes), host = on->allocate_host(bytes);
            CHECK((device->bytes() == bytes && host->bytes() == bytes));
            CHECK(reinterpret_cast<std::uintptr_t>(device->data()) % 64 == 0);
            CHECK(reinterpret_cast<std::uintptr_t>(host->data()) % 64 == 0);
            CHECK(all_zero({host->data(), bytes}));
            std::vector<std::byte> copy(bytes, std::byte{1});
            on->download(on.main(), device->data(), copy.data(), bytes);
            CHECK(all_zero(copy));
        }
        CHECK_THROWS_WITH(on->allocate(kHuge), Catch::Contains("out of memory"));
        CHECK_THROWS_WITH(on->allocate_host(kHuge), Catch::Contains("out of memory"));
        CHECK_NOTHROW(on->allocate(64));  // a refusal harms nothing
    }
}

TEST_CASE("host memory of any kind is copied to the device and back, and may be used again at once") {
    Random random;
    for (const NamedBackend& on : every_backend(1)) {
        for (const int64_t n : {1, 3, 1000, 700001}) {
            INFO(on.name << ", n " << n);
            const Floats from(random, n);
            std::vector<float> staging(from.data(), from.data() + n), back(static_cast<std::size_t>(n));
            const std::size_t bytes = staging.size() * sizeof(float);
            OnDevice<float> device(on, n);
            on->upload(on.main(), staging.data(), device.data(), bytes);
            std::fill(staging.begin(), staging.end(), -1.0F);
            on->download(on.main(), device.data(), back.data(), bytes);
            CHECK(std::equal(back.begin(), back.end(), from.data()));
            CHECK(same_bytes(device.fetch(), from));
        }
        on->upload(on.main(), nullptr, nullptr, 0);
        on->download(on.main(), nullptr, nullptr, 0);
    }
}

TEST_CASE("copies of the backend's own host memory are done when its stream has been waited for") {
    Random random;
    const int64_t n = 50000;
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const Floats from(random, n);
        const auto staging = on->allocate_host(bytes), back = on->allocate_host(bytes);
        std::copy_n(from.data(), n, staging->floats());
        OnDevice<float> device(on, n), sum(on, n);
        for (const bool all : {false, true}) {
            std::fill_n(back->floats(), n, -1.0F);
            on->upload(on.main(), staging->data(), device.data(), bytes);
            on->add(on.main(), n, device.data(), device.data(), sum.data());
            on->download(on.main(), sum.data(), back->data(), bytes);
            if (all) {
                on->synchronize();
            } else {
                on->wait(on.main());
            }
            int64_t wrong = 0;
            for (int64_t i = 0; i < n; ++i) wrong += back->floats()[i] != from[i] + from[i] ? 1 : 0;
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("work ordered after another stream's sees what that stream wrote, there and back") {
    Random random;
    const int64_t n = 30000;
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const Floats from(random, n);
        const OnDevice x(on, from);
        OnDevice<float> twice(on, n), fourfold(on, n), eightfold(on, n);
        on->add(on.main(), n, x.data(), x.data(), twice.data());
        on->order(on.main(), on->communication());
        on->add(on->communication(), n, twice.data(), twice.data(), fourfold.data());
        on->order(on->communication(), on.main());
        on->add(on.main(), n, fourfold.data(), fourfold.data(), eightfold.data());
        const Floats got = eightfold.fetch();
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; ++i) wrong += got[i] != 8 * from[i] ? 1 : 0;
        CHECK(wrong == 0);
    }
}

TEST_CASE("every item is in one range, and there are no more ranges than streams") {
    for (const NamedBackend& on : every_backend()) {
        CHECK(on->streams() >= 1);
        CHECK(on->split_items(0) == std::vector<ShardRange>{{0, 0}});
        for (int count = 1; count < 40; ++count) {
            INFO(on.name << ", count " << count);
            const auto ranges = on->split_items(count);
            REQUIRE((!ranges.empty() && static_cast<int>(ranges.size()) <= on->streams()));
            CHECK((ranges.front().begin == 0 && ranges.back().end == count));
            for (std::size_t i = 0; i < ranges.size(); ++i) {
                CHECK(ranges[i].size() >= 1);
                if (i > 0) CHECK(ranges[i].begin == ranges[i - 1].end);
            }
        }
    }
}

TEST_CASE("each range runs once, on a stream of a number below the streams', and a lone range on the main stream") {
    for (const NamedBackend& on : every_backend()) {
        INFO(on.name);
        CHECK(on.main().index() == 0);
        for (const int count : {1, 2, 3, 12}) {
            const auto ranges = on->split_items(count);
            std::vector<std::atomic<int>> runs(ranges.size());
            std::vector<Stream*> streams(ranges.size());
            on->for_each_range(ranges, [&](Stream& stream, int i) {
                ++runs[static_cast<std::size_t>(i)];
                streams[static_cast<std::size_t>(i)] = &stream;
            });
            for (std::size_t i = 0; i < ranges.size(); ++i) {
                CHECK(runs[i] == 1);
                CHECK((streams[i]->index() >= 0 && streams[i]->index() < on->streams()));
                CHECK((streams[i] == &on.main()) == (ranges.size() == 1));
            }
        }
        on->for_each_range({}, [](Stream&, int) { FAIL("there was nothing to run"); });
    }
}

TEST_CASE("what a range throws reaches the caller, and the backend goes on") {
    for (const NamedBackend& on : every_backend()) {
        INFO(on.name);
        const auto ranges = on->split_items(12);
        CHECK_THROWS_AS(on->for_each_range(ranges,
                                           [&](Stream&, int i) {
                                               if (i + 1 == static_cast<int>(ranges.size()))
                                                   throw std::runtime_error("shard");
                                           }),
                        std::runtime_error);
        std::atomic<int> ran = 0;
        on->for_each_range(ranges, [&](Stream&, int) { ++ran; });
        CHECK(ran == static_cast<int>(ranges.size()));
    }
}

TEST_CASE("ranges see what the main stream did before them, and the main stream what they did, with the same bytes") {
    Random random;
    INFO("seed " << random.seed());
    const int64_t n = 50000;
    const Floats left_host(random, 4 * n), right_host(random, 4 * n);
    for (const NamedBackend& on : every_backend()) {
        INFO(on.name);
        const OnDevice left(on, left_host), right(on, right_host);
        OnDevice<float> positive(on, 4 * n), whole(on, 4 * n), parts(on, 4 * n), back(on, 4 * n);
        on->relu(on.main(), 4 * n, left.data(), positive.data());
        const auto ranges = on->split_items(12);
        const auto for_each_part = [&](auto body) {  // of four, in the ranges of twelve items
            on->for_each_range(ranges, [&](Stream& stream, int i) {
                const ShardRange range = ranges[static_cast<std::size_t>(i)];
                for (int v = range.begin; v < range.end; ++v) {
                    if (v % 3 == 0) body(stream, v / 3);
                }
            });
        };
        for_each_part([&](Stream& stream, int v) {
            on->add(stream, n, positive.data() + v * n, right.data() + v * n, parts.data() + v * n);
        });
        on->relu(on.main(), 4 * n, parts.data(), back.data());
        double sums[4] = {};
        for_each_part([&](Stream& stream, int v) {
            sums[v] = on->square_sum(stream, n, left.data() + v * n, right.data() + v * n, 3, 0.5F);
        });
        on->add(on.main(), 4 * n, positive.data(), right.data(), whole.data());
        CHECK(same_bytes(whole.fetch(), parts.fetch()));
        on->relu(on.main(), 4 * n, whole.data(), whole.data());
        CHECK(same_bytes(whole.fetch(), back.fetch()));
        for (int v = 0; v < 4; ++v) {
            CHECK(sums[v] == on->square_sum(on.main(), n, left.data() + v * n, right.data() + v * n, 3, 0.5F));
        }
    }
}

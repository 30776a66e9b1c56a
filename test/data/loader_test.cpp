// The loader: its batches are those that order and plan name, whatever the number of readers and ranks and wherever it
// starts; errors come out at their batch; the steady state allocates nothing.
#include "data/loader.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "support/allocation_counter.hpp"

namespace lockstep {
namespace {

// Sample i holds i, i + 0.25, i + 0.5 and has label 3 i + 1, so that a batch tells where it comes from.
class NumberedData : public Dataset {
  public:
    explicit NumberedData(int64_t size) : size_(size) {}
    int64_t size() const override { return size_; }
    SampleShape shape() const override { return {1, 3, 1}; }
    int classes() const override { return 10; }
    int32_t read(int64_t index, std::span<float> pixels) const override {
        for (int i = 0; i < 3; ++i)
            pixels[static_cast<size_t>(i)] = static_cast<float>(index) + 0.25f * static_cast<float>(i);
        return label(index);
    }
    int32_t label(int64_t index) const override { return static_cast<int32_t>(3 * index + 1); }
    std::string fingerprint() const override { return "numbered"; }

  private:
    int64_t size_;
};

// Everything a batch says, copied, so that batches of different loaders can be compared.
struct Content {
    int64_t epoch, step, update, global_size;
    std::vector<int64_t> shard_sizes;
    std::vector<float> pixels;
    std::vector<int32_t> labels;
    std::vector<int64_t> positions;
    std::vector<int64_t> indices;
    bool operator==(const Content&) const = default;
};

Content content_of(const Batch& batch) {
    const auto rows = batch.rows;
    return {batch.at.epoch,
            batch.at.step,
            batch.at.update,
            batch.global_size,
            batch.shard_sizes,
            {batch.pixels, batch.pixels + rows * 3},
            {batch.labels, batch.labels + rows},
            {batch.positions, batch.positions + rows},
            {batch.indices, batch.indices + rows}};
}

std::vector<Content> contents(const Dataset& data, const ShardPlan& plan, const LoaderOptions& options) {
    Loader loader(data, plan, options);
    std::vector<Content> out;
    for (int64_t u = options.first_update; u <= options.last_update; ++u) out.push_back(content_of(loader.next()));
    return out;
}

constexpr int64_t kSamples = 103;
constexpr int64_t kUpdates = 31;  // two epochs and a part of a third, with B = 8

LoaderOptions whole(const ShardPlan& plan) {
    LoaderOptions options;
    options.seed = 9;
    options.local = {0, plan.shards()};
    options.last_update = kUpdates;
    return options;
}

TEST_CASE("the batch after this one can be looked at once it is there, in memory that the caller chose", "[loader]") {
    const NumberedData data(kSamples);
    const ShardPlan plan(kSamples, 8, 3, Layout::kBatch, LastBatch::kKeep);
    LoaderOptions options = whole(plan);
    std::vector<std::shared_ptr<std::vector<std::byte>>> chosen;
    options.memory = [&](std::size_t bytes) {
        chosen.push_back(std::make_shared<std::vector<std::byte>>(bytes));
        return std::shared_ptr<std::byte>(chosen.back(), chosen.back()->data());
    };
    const std::vector<Content> expected = contents(data, plan, whole(plan));
    Loader loader(data, plan, options);
    CHECK(chosen.size() == 3U * 4U);  // pixels, labels and positions of depth + 1 batches
    for (std::size_t u = 0; u + 1 < expected.size(); ++u) {
        const Batch& batch = loader.next();
        const Batch* ahead = loader.ahead();
        while (ahead == nullptr) {
            std::this_thread::yield();
            ahead = loader.ahead();
        }
        CHECK(content_of(*ahead) == expected[u + 1]);
        CHECK(content_of(batch) == expected[u]);
        if (u + 2 == expected.size()) CHECK(&loader.next() == ahead);
    }
    CHECK(loader.ahead() == nullptr);  // after the last
    options.threads = 0;
    CHECK(Loader(data, plan, options).ahead() == nullptr);  // read by next() itself
}

TEST_CASE("a batch holds the samples that order and plan name", "[loader]") {
    const NumberedData data(kSamples);
    for (const Layout layout : {Layout::kBatch, Layout::kEpoch}) {
        const ShardPlan plan(kSamples, 8, 3, layout, LastBatch::kKeep);
        int64_t update = 0;
        for (const Content& got : contents(data, plan, whole(plan))) {
            ++update;
            const StepPosition at = step_position(update, plan.steps_per_epoch());
            const EpochOrder order(9, at.epoch, kSamples);
            REQUIRE(got.update == update);
            REQUIRE(got.epoch == at.epoch);
            REQUIRE(got.step == at.step);
            REQUIRE(got.global_size == plan.batch_size(at.step));
            REQUIRE(got.shard_sizes == plan.shard_sizes(at.step));
            size_t row = 0;
            for (int v = 0; v < plan.shards(); ++v) {
                const PositionRange range = plan.shard(at.step, v);
                for (int64_t i = 0; i < range.count; ++i, ++row) {
                    const int64_t index = order.index(range.first + i);
                    REQUIRE(got.positions[row] == range.first + i);
                    REQUIRE(got.indices[row] == index);
                    REQUIRE(got.labels[row] == 3 * index + 1);
                    REQUIRE(got.pixels[3 * row + 2] == static_cast<float>(index) + 0.5f);
                }
            }
            REQUIRE(row == static_cast<size_t>(got.global_size));
        }
    }
}

TEST_CASE("readers and depth change nothing", "[loader]") {
    const NumberedData data(kSamples);
    for (const Layout layout : {Layout::kBatch, Layout::kEpoch}) {
        for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull, Shuffle::kBlock}) {
            const ShardPlan plan(kSamples, 8, 5, layout, LastBatch::kKeep);
            LoaderOptions options = whole(plan);
            options.shuffle = shuffle;
            options.block = 10;
            options.threads = 0;
            const std::vector<Content> expected = contents(data, plan, options);
            for (const int threads : {1, 2, 3}) {
                for (const int depth : {1, 2, 3, 50}) {
                    options.threads = threads;
                    options.depth = depth;
                    CHECK(contents(data, plan, options) == expected);
                }
            }
        }
    }
}

TEST_CASE("another seed gives other batches", "[loader]") {
    const NumberedData data(kSamples);
    const ShardPlan plan(kSamples, 8, 5, Layout::kBatch, LastBatch::kKeep);
    LoaderOptions options = whole(plan);
    const std::vector<Content> first = contents(data, plan, options);
    options.seed = 10;
    CHECK_FALSE(contents(data, plan, options) == first);
}

TEST_CASE("the ranks' batches in rank order are the global batch, for any number of ranks", "[loader]") {
    const NumberedData data(kSamples);
    for (const Layout layout : {Layout::kBatch, Layout::kEpoch}) {
        const ShardPlan plan(kSamples, 8, 5, layout, LastBatch::kKeep);
        const std::vector<Content> expected = contents(data, plan, whole(plan));
        for (int world = 1; world <= 7; ++world) {
            std::vector<Content> joined(expected.size());
            for (int rank = 0; rank < world; ++rank) {
                LoaderOptions options = whole(plan);
                options.local = shards_of_rank(plan.shards(), rank, world);
                const std::vector<Content> part = contents(data, plan, options);
                for (size_t i = 0; i < part.size(); ++i) {
                    if (rank == 0) {
                        joined[i] = part[i];
                        continue;
                    }
                    const auto append = [](auto& to, const auto& from) {
                        to.insert(to.end(), from.begin(), from.end());
                    };
                    append(joined[i].pixels, part[i].pixels);
                    append(joined[i].labels, part[i].labels);
                    append(joined[i].positions, part[i].positions);
                    append(joined[i].indices, part[i].indices);
                }
            }
            CHECK(joined == expected);
        }
    }
}

TEST_CASE("starting in the middle of an epoch continues as if never stopped", "[loader]") {
    const NumberedData data(kSamples);
    const ShardPlan plan(kSamples, 8, 5, Layout::kEpoch, LastBatch::kKeep);
    LoaderOptions options = whole(plan);
    const std::vector<Content> expected = contents(data, plan, options);
    for (const int64_t first : {2, 7, 13, 14, 20, 31}) {
        options.first_update = first;
        CHECK(contents(data, plan, options) == std::vector<Content>(expected.begin() + first - 1, expected.end()));
    }
}

TEST_CASE("pixels begin on a 64-byte border", "[loader]") {
    const NumberedData data(kSamples);
    const ShardPlan plan(kSamples, 7, 2, Layout::kBatch, LastBatch::kKeep);
    Loader loader(data, plan, whole(plan));
    for (int i = 0; i < 10; ++i) CHECK(reinterpret_cast<uintptr_t>(loader.next().pixels) % 64 == 0);
}

TEST_CASE("a batch stays as it was until the next is asked for", "[loader]") {
    const NumberedData data(kSamples);
    const ShardPlan plan(kSamples, 8, 2, Layout::kBatch, LastBatch::kKeep);
    LoaderOptions options = whole(plan);
    options.depth = 1;
    Loader loader(data, plan, options);
    const Batch& first = loader.next();
    const Content before = content_of(first);
    std::this_thread::yield();  // the reader fills the other buffer meanwhile, and must not take this one
    CHECK(content_of(first) == before);
}

// Reading sample `bad` fails.
class FailingData : public NumberedData {
  public:
    FailingData(int64_t size, int64_t bad) : NumberedData(size), bad_(bad) {}
    int32_t read(int64_t index, std::span<float> pixels) const override {
        if (index == bad_) fail(ErrorKind::kData, "sample {} is damaged", index);
        return NumberedData::read(index, pixels);
    }

  private:
    int64_t bad_;
};

TEST_CASE("what a reader throws comes out of next(), at the batch that holds the sample, and again after that",
          "[loader]") {
    const FailingData data(kSamples, 42);
    const ShardPlan plan(kSamples, 8, 2, Layout::kBatch, LastBatch::kKeep);
    for (const int threads : {0, 1, 3}) {
        LoaderOptions options = whole(plan);
        options.shuffle = Shuffle::kNone;
        options.threads = threads;
        Loader loader(data, plan, options);
        for (int i = 0; i < 5; ++i) CHECK(loader.next().rows == 8);  // positions 0 … 39
        const std::string told =
            "sample 42 is damaged (sample 42, at position 42 of epoch 0); lockstep inspect --deep names all that are "
            "damaged";
        CHECK_THROWS_WITH(loader.next(), told);
        CHECK_THROWS_WITH(loader.next(), told);
    }
}

TEST_CASE("asking for more than the last update is an error", "[loader]") {
    const NumberedData data(10);
    const ShardPlan plan(10, 4, 2, Layout::kBatch, LastBatch::kKeep);
    LoaderOptions options = whole(plan);
    options.last_update = 3;
    Loader loader(data, plan, options);
    CHECK(loader.next().global_size == 4);
    CHECK(loader.next().global_size == 4);
    CHECK(loader.next().global_size == 2);
    CHECK_THROWS_AS(loader.next(), Error);
}

// Reading blocks until the gate opens; says when the first reader has come.
class GatedData : public NumberedData {
  public:
    explicit GatedData(int64_t size) : NumberedData(size) {}
    int32_t read(int64_t index, std::span<float> pixels) const override {
        if (!arrived.test_and_set()) first_arrived.set_value();
        gate.wait(false);
        reads.fetch_add(1);
        return NumberedData::read(index, pixels);
    }
    mutable std::atomic_flag arrived = ATOMIC_FLAG_INIT;
    mutable std::promise<void> first_arrived;
    mutable std::atomic<bool> gate{false};
    mutable std::atomic<int> reads{0};
};

TEST_CASE("a loader ends at once, whether its readers wait for room or are in the middle of a batch", "[loader]") {
    const NumberedData data(1000);
    const ShardPlan plan(1000, 100, 2, Layout::kBatch, LastBatch::kKeep);
    LoaderOptions options = whole(plan);
    for (const int threads : {1, 2, 3}) {
        options.threads = threads;
        Loader unused(data, plan, options);
        Loader used(data, plan, options);
        used.next();
    }
    GatedData slow(1000);
    options.threads = 1;
    std::thread opener;
    {
        Loader loader(slow, plan, options);
        slow.first_arrived.get_future().wait();
        // Opens the gate while the destructor waits, or before: either way it must not read the whole ring.
        opener = std::thread([&] {
            slow.gate = true;
            slow.gate.notify_all();
        });
    }
    opener.join();
    CHECK(slow.reads <= 400);
}

TEST_CASE("ranks without shards get batches without rows", "[loader]") {
    const NumberedData data(kSamples);
    const ShardPlan plan(kSamples, 8, 2, Layout::kBatch, LastBatch::kKeep);
    LoaderOptions options = whole(plan);
    options.local = {1, 1};
    Loader loader(data, plan, options);
    for (int64_t u = 1; u <= kUpdates; ++u) {
        const Batch& batch = loader.next();
        CHECK(batch.rows == 0);
        CHECK(batch.global_size == plan.batch_size(batch.at.step));
    }
}

TEST_CASE("the steady state allocates nothing", "[loader]") {
    const NumberedData data(kSamples);
    const ShardPlan plan(kSamples, 8, 5, Layout::kEpoch, LastBatch::kKeep);
    for (const int threads : {0, 1, 2}) {
        LoaderOptions options = whole(plan);
        options.threads = threads;
        options.last_update = 500;
        Loader loader(data, plan, options);
        for (int i = 0; i < 20; ++i) loader.next();
        const test::AllocationCounter counter;
        for (int i = 0; i < 400; ++i) loader.next();
        const int64_t allocations = counter.count();
        CHECK(allocations == 0);
    }
}

TEST_CASE("a data set of another size than the plan's is refused", "[loader]") {
    const NumberedData data(10);
    const ShardPlan plan(11, 4, 2, Layout::kBatch, LastBatch::kKeep);
    CHECK_THROWS_AS(Loader(data, plan, whole(plan)), Error);
}

}  // namespace
}  // namespace lockstep

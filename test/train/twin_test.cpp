// Twins of the promise's test: each breaks one rule of the contract on purpose, and the same comparison must then fail.
// A test that cannot fail proves nothing.
#include <catch2/catch.hpp>
#include <cstring>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Job job_of_twins() {
    Job job;
    job.samples = 500;
    job.batch = 90;
    return job;
}

Outcome alone() {
    return run(job_of_twins(), {1, {1}, {"auto"}, 4096, 32});
}

/// Adds the ranks' sums as they come, rank 0 first: right up to rounding, and another number in the last bit.
class RankOrderReducer : public Reducer {
  public:
    RankOrderReducer(Communicator& comm, ReduceLayout layout, bool mean_of_means)
        : comm_(comm), elements_(layout.lead + layout.elements), mean_of_means_(mean_of_means) {}
    void begin(std::span<const int64_t> sizes, std::span<float* const> partial) override {
        own_ = partial;
        sizes_.assign(sizes.begin(), sizes.end());
    }
    void ready(int64_t) override {}
    void poll() override {}
    void finish() override {
        std::vector<float> sum(own_[0], own_[0] + elements_);
        for (std::size_t i = 1; i < own_.size(); ++i) {
            for (int64_t e = 0; e < elements_; ++e) sum[static_cast<std::size_t>(e)] += own_[i][e];
        }
        const int shards = static_cast<int>(sizes_.size());
        int64_t all = 0;
        int64_t mine = 0;
        const ShardRange range = shards_of_rank(shards, comm_.rank(), comm_.size());
        for (int v = 0; v < shards; ++v) {
            all += sizes_[static_cast<std::size_t>(v)];
            if (v >= range.begin && v < range.end) mine += sizes_[static_cast<std::size_t>(v)];
        }
        if (mean_of_means_ && mine > 0) {
            // Each rank's own mean, averaged over ranks: what b / (mine * W) makes of the sum once it is divided by b.
            const float factor =
                static_cast<float>(all) / (static_cast<float>(mine) * static_cast<float>(comm_.size()));
            for (float& value : sum) value *= factor;
        }
        const auto parts = comm_.all_gather(std::as_bytes(std::span(sum)));
        std::vector<float> other(sum.size());
        for (std::size_t r = 0; r < parts.size(); ++r) {
            std::memcpy(other.data(), parts[r].data(), parts[r].size());
            for (int64_t e = 0; e < elements_; ++e)
                own_[0][e] = (r == 0 ? 0.0F : own_[0][e]) + other[static_cast<std::size_t>(e)];
        }
    }
    int64_t bytes_sent() const override { return 0; }
    int64_t messages_sent() const override { return 0; }
    double seconds_waiting() const override { return 0; }

  private:
    Communicator& comm_;
    int64_t elements_;
    bool mean_of_means_;
    std::span<float* const> own_;
    std::vector<int64_t> sizes_;
};

Outcome with_reducer(int world, bool mean_of_means) {
    return run(job_of_twins(), {world, {1}, {"auto"}, 4096, 32}, {[&](LoadedConfig&, TrainOptions& options, int) {
                   options.make_reducer = [=](Communicator& comm, int, ReduceLayout layout, Adder) {
                       return std::make_unique<RankOrderReducer>(comm, layout, mean_of_means);
                   };
               }});
}

/// A data set that every rank reads in an order of its own.
class ShuffledPerRank : public Dataset {
  public:
    ShuffledPerRank(const Dataset& data, int rank) : data_(data), rank_(rank) {}
    int64_t size() const override { return data_.size(); }
    SampleShape shape() const override { return data_.shape(); }
    int classes() const override { return data_.classes(); }
    int32_t read(int64_t i, std::span<float> pixels) const override { return data_.read(moved(i), pixels); }
    int32_t label(int64_t i) const override { return data_.label(moved(i)); }
    std::string fingerprint() const override { return data_.fingerprint(); }

  private:
    int64_t moved(int64_t i) const { return (i + rank_) % data_.size(); }
    const Dataset& data_;
    int rank_;
};

}  // namespace

TEST_CASE("the comparison of the twins holds when no rule is broken") {
    REQUIRE(run(job_of_twins(), {3, {1}, {"auto"}, 4096, 32}) == alone());
}

TEST_CASE("twin: a reducer that adds in rank order is found out") {
    // At W = 2 and V = 8 the order of ranks is the tree's; with 3 it is not.
    REQUIRE_FALSE(with_reducer(3, false) == alone());
}

TEST_CASE("twin: a mean of the ranks' means is found out") {
    REQUIRE_FALSE(with_reducer(4, true) == alone());
}

TEST_CASE("twin: a seed with the rank added is found out") {
    const Spoil spoil{[](LoadedConfig& loaded, TrainOptions& options, int rank) {
        loaded.config.seed += rank;
        options.check_start = false;
    }};
    REQUIRE_THROWS_WITH(run(job_of_twins(), {2, {1}, {"auto"}, 4096, 32}, spoil),
                        Catch::Contains("replica check: rank 1"));
}

TEST_CASE("the start check refuses a seed with the rank added") {
    const Spoil spoil{[](LoadedConfig& loaded, TrainOptions&, int rank) { loaded.config.seed += rank; }};
    REQUIRE_THROWS_WITH(run(job_of_twins(), {2, {1}, {"auto"}, 4096, 32}, spoil),
                        Catch::Contains("seed") && Catch::Contains("rank 1"));
}

TEST_CASE("twin: a shuffle per rank is found out") {
    const LoadedConfig loaded = config_of(job_of_twins());
    set_log(LogLevel::kQuiet, false);
    std::string sha256;
    run_thread_world(2, [&](Communicator& comm) {
        DataSplits own = open_data(loaded.config);
        const DataSplits kept = open_data(loaded.config);
        own.train = std::make_unique<ShuffledPerRank>(*kept.train, comm.rank());
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        LoadedConfig mine = loaded;
        mine.config.device.threads = 1;
        const TrainResult result = train_on(comm, mine, own, options);
        if (comm.rank() == 0) sha256 = result.sha256;
    });
    REQUIRE(sha256 != alone().sha256);
}

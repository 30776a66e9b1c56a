// The promise: a run is a function of its config and its data. Ranks, threads, instruction sets and bucket sizes decide
// who computes a number and when, never what it is. Equality is equality of bytes: sha256 of the model file, and the
// metrics.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <random>

#include "train/pairwise.hpp"
#include "train/point.hpp"

using namespace lockstep::test;

namespace {

struct Sizes {
    int64_t samples, batch, shards;
};

const std::vector<std::string> kOptimizers{"sgd",  "momentum", "nesterov", "adagrad", "rmsprop", "rmsprop_momentum",
                                           "adam", "adamw",    "lars",     "lamb"};
const std::vector<std::string> kSchedules{"constant", "cosine", "piecewise", "exponential", "poly", "plateau"};
const std::vector<Sizes> kSizes{{1003, 96, 8}, {1003, 96, 1}, {1003, 96, 5}, {1003, 96, 12}, {103, 5, 8}, {50, 96, 8}};

std::vector<std::string> isa_choices() {
    std::vector<std::string> choices = isas_here();
    choices.emplace_back("mixed");
    return choices;
}

std::vector<std::string> isas_of(const std::string& choice) {
    return choice == "mixed" ? isas_here() : std::vector{choice};
}

/// The outcome on one rank and thread with the scalar loops that define the arithmetic; kept, as many points share a
/// job.
class References {
  public:
    const Outcome& of(const Job& job) {
        const auto [at, fresh] = known_.try_emplace(job.describe());
        if (fresh) at->second = run(job, {1, {1}, {"scalar"}, 4096, 32});
        return at->second;
    }

  private:
    std::map<std::string, Outcome> known_;
};

void require_equal(References& references, const Job& job, const Cast& cast) {
    INFO(job.describe() << " | " << cast.describe());
    const Outcome& expected = references.of(job);
    const Outcome actual = run(job, cast);
    REQUIRE(expected.sha256.size() == 64);
    REQUIRE(actual.metrics == expected.metrics);
    REQUIRE(actual.sha256 == expected.sha256);
}

Job small_job(std::size_t model, std::size_t optimizer, const std::string& op, const std::string& layout,
              const std::string& last, const Sizes& sizes) {
    Job job;
    job.model = model == 0 ? "mlp" : "lenet";
    job.dropout = model == 2 ? 0.3 : 0;
    job.optimizer = kOptimizers[optimizer];
    job.op = op;
    job.layout = layout;
    job.last = sizes.samples < sizes.batch ? "keep" : last;
    job.samples = sizes.samples;
    job.batch = sizes.batch;
    job.shards = sizes.shards;
    return job;
}

}  // namespace

TEST_CASE("any world, threads, instruction set and bucket size give the bits of one rank (pairwise cover)") {
    const std::vector<int> worlds{1, 2, 3, 4, 5, 7, 8};
    const std::vector<std::string> isas = isa_choices();
    const std::vector<int64_t> buckets{1, 64, 65536};
    const std::vector<std::string> ops{"average", "sum"};
    const std::vector<std::string> layouts{"batch", "epoch"};
    const std::vector<std::string> lasts{"keep", "drop"};
    References references;
    const auto rows = covering_rows({worlds.size(), 3, isas.size(), buckets.size(), 2, 2, 2, kOptimizers.size(), 3,
                                     kSizes.size(), kSchedules.size()},
                                    7);
    for (const auto& row : rows) {
        Job job = small_job(row[8], row[7], ops[row[4]], layouts[row[5]], lasts[row[6]], kSizes[row[9]]);
        job.schedule = kSchedules[row[10]];
        if (row[10] % 2 == 1) {
            job.clip_norm = 0.5;
            job.weight_decay = 1e-3;
            job.warmup = 0.3;
            job.validation = job.schedule == "plateau" ? 0.1 : 0;
        }
        const auto threads = static_cast<int64_t>(row[1] + 1);
        require_equal(references, job, {worlds[row[0]], {threads, 1}, isas_of(isas[row[2]]), buckets[row[3]], 0});
    }
}

TEST_CASE("random points of the product give the bits of one rank", "[.long]") {
    const auto seed = static_cast<unsigned>(std::chrono::steady_clock::now().time_since_epoch().count());
    std::mt19937 random(seed);
    const auto pick = [&](auto... values) {
        const std::vector all{values...};
        return all[random() % all.size()];
    };
    const std::vector<std::string> isas = isa_choices();
    constexpr int kPoints = 3000;
    fmt::print("seed {}, {} points\n", seed, kPoints);
    for (int i = 0; i < kPoints; ++i) {
        References references;  // nothing is kept: every point has its own job
        const Sizes sizes{pick(1003, 50, 97, 311), pick(96, 5, 7, 64, 33), pick(8, 1, 5, 12, 4, 16)};
        Job job = small_job(random() % 3, random() % kOptimizers.size(), pick("average", "sum"), pick("batch", "epoch"),
                            pick("keep", "drop"), sizes);
        job.shuffle = pick("full", "block", "none");
        job.clip_norm = pick(0.0, 0.5);
        job.weight_decay = pick(0.0, 1e-3);
        job.l2 = pick(0.0, 1e-3);
        job.schedule = pick("constant", "step", "cosine", "linear", "piecewise", "exponential", "poly", "plateau");
        job.validation = pick(0.0, 0.0, 0.1);
        job.warmup = pick(0.0, 0.4);
        job.classes = pick(10, 2, 4);
        job.seed = random() % 1000;
        job.steps = pick(3, 9, 14);
        const Cast cast{pick(1, 2, 3, 4, 5, 7, 8),
                        {pick(1, 2, 3), pick(1, 2)},
                        isas_of(isas[random() % isas.size()]),
                        pick(1, 64, 65536),
                        pick(0, 32)};
        INFO("seed " << seed << " point " << i);
        require_equal(references, job, cast);
        if (i % 100 == 99) {
            fmt::print("{} points, 0 differing bits\n", i + 1);
            std::fflush(stdout);
        }
    }
}

TEST_CASE("the full networks give the bits of one rank in twenty points", "[.long]") {
    const std::vector<std::string> isas = isa_choices();
    References references;
    int points = 0;
    for (const std::string model : {"mlp", "lenet"}) {
        for (const int world : {1, 2, 3, 4, 8}) {
            for (const int64_t bucket : {64, 4096}) {
                Job job;
                job.model = model;
                job.full_size = true;
                job.dropout = model == "lenet" ? 0.5 : 0;
                job.batch = 128;
                job.samples = 300;
                job.steps = model == "lenet" ? 3 : 8;
                const Cast cast{
                    world, {1 + points % 3}, isas_of(isas[static_cast<std::size_t>(points) % isas.size()]), bucket, 32};
                require_equal(references, job, cast);
                ++points;
            }
        }
    }
    REQUIRE(points == 20);
}

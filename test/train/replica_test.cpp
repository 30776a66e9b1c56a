// The replica check, seen to fail: one bit flipped in one rank's memory is named, nothing is saved after it, and the
// last checkpoint that passed leads to the run that was never disturbed.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>

#include "backend/cpu/cpu_backend.hpp"
#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "io/temp_folder.hpp"
#include "train/agreement.hpp"
#include "train/point.hpp"
#include "train/replica_check.hpp"
#include "train/step_engine.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// One bit of a rank's memory that flips after an update.
struct Flip {
    int rank = 0;
    int64_t step = 0;
    int array = 0;      // 0: weights; 1, 2: the optimizer's slots
    int parameter = 0;  // in the table
    int64_t element = 0;
    int bit = 0;
    bool healed = false;  // it flips back once the next step's gradient is computed
};

class Flipper final : public StepWatcher {
  public:
    Flipper(StepEngine& engine, const Flip& flip) : flip_(flip) {
        float* const array = flip.array == 0 ? engine.weights()
                                             : engine.update().slots()[static_cast<std::size_t>(flip.array - 1)].values;
        value_ = array + engine.network().parameters()[flip.parameter].offset + flip.element;
    }
    void updated(const StepOutcome& outcome, float*) override {
        armed_ = outcome.at.update == flip_.step;
        if (armed_) flip();
    }
    void partials_final(int64_t first, int64_t, std::span<float* const>) override {
        if (armed_ && flip_.healed && first == 0) flip();
    }

  private:
    void flip() { *value_ = std::bit_cast<float>(std::bit_cast<uint32_t>(*value_) ^ (uint32_t{1} << flip_.bit)); }
    Flip flip_;
    float* value_;
    bool armed_ = false;
};

struct Setting {
    int world = 2;
    std::vector<Flip> flips;
    std::string out = {};  // "" = in memory
    std::function<void(Config&)> change = [](Config&) {};
    std::string model = "mlp";
};

struct Ended {
    std::vector<std::optional<Caught>> failures;  // of each rank
    std::string sha256;
};

/// Trains with ranks as threads and keeps what each rank throws, if it is an error that all are to share.
Ended train_with_flips(const Setting& setting) {
    set_log(LogLevel::kQuiet, false);
    Job job;
    job.model = setting.model;
    job.samples = 211;
    job.batch = 32;
    job.steps = 12;
    LoadedConfig loaded = config_of(job);
    loaded.config.device.threads = 1;
    setting.change(loaded.config);
    const DataSplits data = open_data(loaded.config);
    Ended ended;
    ended.failures.resize(static_cast<std::size_t>(setting.world));
    std::mutex mutex;
    run_thread_world(setting.world, [&](Communicator& comm) {
        std::vector<std::unique_ptr<Flipper>> flippers;
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        options.out = setting.out;
        options.resume = ResumeMode::kAuto;
        options.on_engine = [&](StepEngine& engine) {
            for (const Flip& flip : setting.flips) {
                if (flip.rank != comm.rank()) continue;
                flippers.push_back(std::make_unique<Flipper>(engine, flip));
                engine.watch(*flippers.back());
            }
        };
        TrainResult result;
        std::optional<Caught> failure;
        try {
            result = train_on(comm, loaded, data, options);
        } catch (const SharedError& e) {
            failure = Caught{e.kind(), e.what()};
        }
        const std::scoped_lock lock(mutex);
        ended.failures[static_cast<std::size_t>(comm.rank())] = failure;
        if (comm.rank() == 0) ended.sha256 = result.sha256;
    });
    return ended;
}

/// The one message of all ranks.
std::string mismatch_of(const Ended& ended) {
    for (const auto& failure : ended.failures) {
        REQUIRE(failure);
        CHECK(failure->kind == ErrorKind::kMismatch);
        CHECK(failure->message == ended.failures.front()->message);
    }
    return ended.failures.front()->message;
}

std::vector<int> ranks_named_first(const std::string& message) {
    std::vector<int> ranks;
    const std::string start = "replica check: rank ";
    for (std::size_t at = message.find(start); at != std::string::npos; at = message.find(start, at + 1)) {
        ranks.push_back(std::stoi(message.substr(at + start.size())));
    }
    return ranks;
}

std::function<void(Config&)> check_every(int64_t steps) {
    return [=](Config& c) { c.check.replicas_every = steps; };
}

}  // namespace

TEST_CASE("in doubt are the ranks outside the largest group, and all where two groups are largest") {
    struct Case {
        std::vector<uint64_t> hashes;
        std::vector<int> in_doubt;
        int reference, other;
    };
    for (const Case& c : std::vector<Case>{{{7}, {}, 0, 0},
                                           {{7, 7, 7}, {}, 0, 2},
                                           {{7, 8}, {0, 1}, 0, 1},
                                           {{7, 8, 7}, {1}, 0, 1},
                                           {{8, 7, 7}, {0}, 1, 0},
                                           {{7, 8, 9}, {0, 1, 2}, 0, 1},
                                           {{7, 7, 8, 8}, {0, 1, 2, 3}, 0, 2},
                                           {{8, 7, 7, 9}, {0, 3}, 1, 0},
                                           {{9, 7, 7, 8, 8}, {0, 1, 2, 3, 4}, 1, 0}}) {
        const ReplicaGroups groups = group_replicas(c.hashes);
        CHECK(groups.in_doubt == c.in_doubt);
        CHECK(groups.reference == c.reference);
        if (!c.in_doubt.empty()) CHECK(groups.other == c.other);
    }
}

TEST_CASE(
    "the hash is a function of the weights alone: of every tensor, not of threads, gaps or the optimizer's state") {
    ParameterTable parameters;
    parameters.add("large.weight", {211, 170}, {});
    parameters.add("small.bias", {3}, {});
    parameters.add("last.weight", {5, 7}, {});
    const auto elements = static_cast<std::size_t>(parameters.flat_elements());
    std::vector<float> weights(elements);
    for (std::size_t i = 0; i < elements; ++i) weights[i] = static_cast<float>(i) * 0.25F;
    std::vector<float> slot(elements, 1.0F);
    const auto hash_with = [&](int threads) {
        const auto alone = make_single_communicator();
        const auto backend = make_cpu_backend({Isa::kAuto, threads});
        ReplicaCheck check(*alone, *backend, parameters, weights.data(), {{"momentum", slot.data()}});
        CHECK(check.compare(true).empty());
        return check.hash();
    };
    const uint64_t before = hash_with(1);
    for (const int threads : {2, 3, 5}) CHECK(hash_with(threads) == before);
    for (const Parameter& p : parameters.all()) {
        for (const int64_t e : {p.offset, p.offset + p.count / 2, p.offset + p.count - 1}) {
            float& value = weights[static_cast<std::size_t>(e)];
            const float kept = value;
            value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ 1U);
            CHECK(hash_with(2) != before);
            value = kept;
        }
    }
    slot[0] = 2;
    weights[static_cast<std::size_t>(parameters[1].offset + 3)] = 5;  // nothing is computed with what follows the bias
    CHECK(hash_with(1) == before);
}

TEST_CASE("one bit flipped on one rank is named by all ranks at the next check, with its place and both values") {
    for (const int world : {2, 3, 4, 8}) {
        for (const int rank : {0, world - 1}) {
            CAPTURE(world, rank);
            const std::string message =
                mismatch_of(train_with_flips({world, {{rank, 5, 0, 1, 6, 3}}, "", check_every(5)}));
            INFO(message);
            const std::vector<int> expected = world == 2 ? std::vector<int>{0, 1} : std::vector<int>{rank};
            CHECK(ranks_named_first(message) == expected);
            CHECK(message.starts_with("step 5: replica check: rank "));
            CHECK_THAT(message, Catch::Contains(" on " + host_name() + " (cpu ") && Catch::Contains("fc1.bias[6] = "));
            CHECK_THAT(message, Catch::EndsWith("no checkpoint has passed, start again"));
        }
    }
    CHECK(train_with_flips({3, {}, "", check_every(5)}).sha256 == train_with_flips({1, {}, "", check_every(0)}).sha256);
}

TEST_CASE("two ranks flipped differently are both named; among three, all are") {
    const std::vector<Flip> two{{1, 5, 0, 0, 40, 3}, {3, 5, 0, 2, 7, 30}};
    const std::string four = mismatch_of(train_with_flips({4, two, "", check_every(5)}));
    CHECK(ranks_named_first(four) == std::vector<int>{1, 3});
    CHECK_THAT(four, Catch::Contains("fc1.weight[0, 40] = ") && Catch::Contains("fc2.weight[0, 7] = "));
    const std::string three =
        mismatch_of(train_with_flips({3, {{1, 5, 0, 0, 40, 3}, {2, 5, 0, 0, 40, 4}}, "", check_every(5)}));
    CHECK(ranks_named_first(three) == std::vector<int>{0, 1, 2});
    // However many there are, the message stays one that can be read.
    std::vector<Flip> ten;
    for (int r = 0; r < 10; ++r) ten.push_back({r, 5, 0, 0, r, 3});
    CHECK_THAT(mismatch_of(train_with_flips({10, ten, "", check_every(5)})), Catch::Contains("and 2 ranks more"));
}

TEST_CASE("an element is named as the files have it, where memory holds its tensor in another order") {
    // fc1 of lenet reads a map of 3 x 3 x 5: memory's column 1 is channel 1 of the first pixel, the file's column 9.
    const std::string message = mismatch_of(train_with_flips({3, {{1, 5, 0, 4, 1, 3}}, "", check_every(5), "lenet"}));
    CHECK_THAT(message, Catch::Contains("fc1.weight[0, 9] = "));
}

TEST_CASE("after a flip before a checkpoint nothing is saved, and the one before leads to the undisturbed run") {
    // In the weights, or in the optimizer's state, whose difference has not reached a weight yet.
    for (const int array : {0, 1}) {
        CAPTURE(array);
        const TempFolder folder;
        const auto every_four = [](Config& c) {
            c.check.replicas_every = 0;
            c.checkpoint.every_steps = 4;
        };
        const std::string run = folder / "run";
        const std::string message = mismatch_of(train_with_flips({3, {{2, 8, array, 0, 5, 20}}, run, every_four}));
        CHECK(ranks_named_first(message) == std::vector<int>{2});
        CHECK_THAT(message,
                   Catch::Contains(array == 0 ? "has fc1.weight[0, 5] = " : "has momentum/fc1.weight[0, 5] = "));
        CHECK_THAT(message, Catch::EndsWith("resume from " + run +
                                            "/checkpoints/step-00000004, the last checkpoint that passed"));
        auto names = TempFolder::names_in(run + "/checkpoints");
        std::sort(names.begin(), names.end());
        CHECK(names == std::vector<std::string>{"latest", "step-00000004"});
        CHECK_FALSE(std::filesystem::exists(run + "/model.safetensors"));
        const std::string events = text_of(read_file(run + "/events.jsonl"));
        CHECK_THAT(events, Catch::Contains(R"("step":4,"passed":true,"of":"weights and optimizer state","hash":")"));
        CHECK_THAT(events, Catch::Contains(R"("step":8,"passed":false,)") && Catch::Contains(R"("ranks":[{"rank":2,)"));

        const Ended resumed = train_with_flips({2, {}, run, every_four});
        CHECK(resumed.sha256 == train_with_flips({1, {}}).sha256);
        CHECK_FALSE(resumed.sha256.empty());
    }
}

TEST_CASE("a check that is due with a checkpoint is made where nothing is saved, too") {
    const auto change = [](Config& c) {
        c.check.replicas_every = 5;
        c.checkpoint.every_steps = 5;
    };
    CHECK(mismatch_of(train_with_flips({3, {{1, 5, 0, 0, 4, 20}}, "", change})).starts_with("step 5: "));
}

TEST_CASE("twin: with the check off the flip goes unseen until the end, where the final model is refused") {
    const std::string message = mismatch_of(train_with_flips({3, {{1, 5, 0, 0, 4, 20}}, "", check_every(0)}));
    CHECK(message.starts_with("step 12: replica check: rank 1 "));
    CHECK(mismatch_of(train_with_flips({3, {{1, 5, 0, 0, 4, 20}}, "", check_every(1)})).starts_with("step 5: "));
}

TEST_CASE("what no comparison of ranks can find: a flip that is gone after its gradient has reached all weights") {
    // All ranks hold the same wrong weights then. Runs repeated or split into worlds find it; replicas do not.
    Flip passing{1, 5, 0, 0, 4, 20};
    passing.healed = true;
    const Ended ended = train_with_flips({3, {passing}, "", check_every(2)});  // never between the two flips
    CHECK_FALSE(ended.failures.front());
    CHECK(ended.sha256 != train_with_flips({3, {}}).sha256);
}

TEST_CASE("values that agree again when they are compared are told as that") {
    ReplicaDifference difference{2,          0, "node7", "cpu avx512, 1 thread", "fc1.weight[3, 17]", 0x3f000000,
                                 0x3e800000, 1, 99};
    CHECK(difference.text() ==
          "rank 2 on node7 (cpu avx512, 1 thread) has fc1.weight[3, 17] = 0.5 (0x3f000000), rank 0 has 0.25 "
          "(0x3e800000); 1 of 99 elements differs");
    difference.differing = 0;
    CHECK(difference.text() ==
          "rank 2 on node7 (cpu avx512, 1 thread) hashed other values of fc1.weight than rank 0, but both hold the "
          "same now");
}

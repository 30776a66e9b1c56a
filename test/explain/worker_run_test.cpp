// Training under another trainer's rules: under Lockstep's own rules the simulated workers end with Lockstep's weights,
// bit for bit, and each foreign rule alone makes another run.
#include "explain/worker_run.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "backend/cpu/cpu_backend.hpp"
#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "explain/comparison.hpp"
#include "explain/worker_reading.hpp"
#include "io/safetensors.hpp"
#include "io/temp_folder.hpp"
#include "train/model_file.hpp"
#include "train/settings.hpp"
#include "train/trainer.hpp"

namespace lockstep {
namespace {

LoadedConfig small_config(const std::vector<std::string>& sets = {}) {
    std::vector<std::string> all{
        "data.format=synthetic", "data.samples=203", "data.test_samples=61", "data.classes=7", "data.shape=[5,5,1]",
        "model.hidden=[9]",      "batch.size=24",    "batch.shards=8",       "train.epochs=2", "device.backend=cpu",
        "device.threads=1",      "log.every=1",      "optimizer.lr=0.1"};
    all.insert(all.end(), sets.begin(), sets.end());
    return load_config({{}, {}, all, "."});
}

/// A convolution with batch norm, on as many samples as make whole batches, so that nothing is read twice.
LoadedConfig normed_config(const std::vector<std::string>& sets) {
    const test::TempFolder folder;
    const std::string file = folder.write("net.toml",
                                          "[[model.layers]]\nkind = \"conv\"\nchannels = 3\nkernel = 3\nnorm = "
                                          "true\nactivation = \"relu\"\n\n[[model.layers]]\nkind = "
                                          "\"global_pool\"\n\n[[model.layers]]\nkind = \"dense\"\nunits = 7\n");
    std::vector<std::string> all{
        "model.name=custom",  "data.format=synthetic", "data.samples=96", "data.test_samples=61", "data.classes=7",
        "data.shape=[5,5,1]", "batch.size=24",         "batch.shards=2",  "train.epochs=2",       "device.backend=cpu",
        "device.threads=1",   "log.every=1",           "optimizer.lr=0.1"};
    all.insert(all.end(), sets.begin(), sets.end());
    return load_config({{file}, {}, all, "."});
}

Facts facts_of(const char* scheme, const LoadedConfig& loaded, int workers) {
    Question q = question_of(loaded.config, data_facts(loaded.config));
    q.workers = workers;
    return explain(scheme_named(scheme), q);
}

/// The weights that the trainer itself ends with, flat.
std::vector<float> trained(const LoadedConfig& loaded) {
    const auto comm = make_single_communicator();
    TrainOptions options;
    options.progress.style = ProgressStyle::kNone;
    const DataSplits data = open_data(loaded.config);
    const TrainResult result = train_on(*comm, loaded, data, options);
    const auto backend = make_cpu_backend({Isa::kAuto, 1});
    const Network network(model_spec(loaded.config, data.train->shape(), data.train->classes(), data.train->columns()),
                          *backend);
    std::vector<float> flat(static_cast<std::size_t>(network.parameters().stored_elements()));
    load_tensors(SafetensorsFile::parse(result.model, "model"), "model", network.parameters(), "", flat.data());
    return flat;
}

/// As `train` ends.
bool ends_like_train(const LoadedConfig& loaded, int workers) {
    const RunOutcome outcome =
        train_under(lockstep_rules(facts_of("ddp", loaded, workers)), loaded.config, open_data(loaded.config));
    return outcome.epochs.size() == 2 && outcome.weights == trained(loaded);
}

TEST_CASE("workers under Lockstep's rules end with Lockstep's own weights, bit for bit") {
    for (const char* model : {"mlp", "lenet"}) {
        for (const char* optimizer : {"momentum", "adam"}) {
            for (const int workers : {1, 2, 4, 3}) {
                CAPTURE(model, optimizer, workers);
                const bool lenet = std::string(model) == "lenet";
                CHECK(ends_like_train(
                    small_config({std::string("model.name=").append(model),
                                  std::string("optimizer.name=").append(optimizer), "optimizer.lr=0.01",
                                  lenet ? "data.shape=[12,12,1]" : "data.shape=[5,5,1]", "model.channels=[3,4]",
                                  "model.dropout=0.25", workers == 3 ? "batch.shards=6" : "batch.shards=8"}),
                    workers));
            }
        }
    }
}

TEST_CASE("so they do with batch norm of either scope, whose running values are weights, too") {
    for (const char* scope : {"shard", "global"}) {
        CAPTURE(scope);
        CHECK(ends_like_train(small_config({"model.name=resnet20", "data.shape=[8,8,1]", "data.samples=70",
                                            std::string("batch_norm.scope=").append(scope)}),
                              2));
    }
}

TEST_CASE("so they do on a table, whose columns the network reads by their kinds") {
    const test::TempFolder folder;
    std::string table = "age,job,label\n";
    for (int i = 0; i < 90; ++i) {
        table += fmt::format("{},{},{}\n", 20 + i % 7, i % 3 == 0 ? "cook" : "clerk", i % 5 > 1 ? "yes" : "no");
    }
    const std::string file = folder.write("train.csv", table);
    CHECK(ends_like_train(
        small_config({"data.format=csv", "data.train=" + file, "model.name=wide_deep", "data.test=" + file}), 2));
}

TEST_CASE("so they do with whatever else the config says: augmentation, layout, a dropped batch, shards, weights") {
    const test::TempFolder folder;
    const std::string pictures = "data.shape=[8,8,3]";
    const auto check = [](std::vector<std::string> sets) {
        for (const int workers : {2, 3, 4}) {
            CAPTURE(sets, workers);
            CHECK(ends_like_train(small_config(sets), workers));
        }
    };
    check({"augment.pad_crop=2", "augment.flip=true", "augment.cutout=3", pictures});
    check({"batch.layout=epoch"});
    check({"batch.layout=epoch", "batch.shards=5"});
    check({"batch.last=drop"});
    check({"batch.shards=3"});
    check({"batch.shards=1"});
    check({"data.shuffle=block", "data.block=16"});
    check({"batch.micro=6", "optimizer.clip_norm=0.1", "optimizer.weight_decay=0.01"});
    check({"batch.shards=3", "model.name=resnet20", "data.shape=[8,8,1]", "data.samples=50"});
    const auto comm = make_single_communicator();
    const LoadedConfig other = small_config({"seed=5"});
    TrainOptions options;
    options.progress.style = ProgressStyle::kNone;
    const TrainResult result = train_on(*comm, other, open_data(other.config), options);
    check({"model.weights=" + folder.write("start.safetensors", std::span<const std::byte>(result.model))});
}

Cause cause_named(const char* name, const Facts& facts, const LoadedConfig& loaded) {
    std::vector<std::string> idle;
    for (const Cause& cause : causes_of(facts, loaded.config, idle)) {
        if (cause.name == name) return cause;
    }
    FAIL(name << " is no cause");
    return {};
}

TEST_CASE(
    "batch norm over B/W alone is another run: that of shards, each with statistics of its own, as the worker's") {
    const LoadedConfig loaded = normed_config({"batch_norm.scope=global"});
    const Facts facts = facts_of("tf-replicated", loaded, 2);
    const Cause cause = cause_named("batch norm over B/W", facts, loaded);
    const std::vector<float> apart = train_under(cause.rules, loaded.config, open_data(loaded.config)).weights;
    const std::vector<float> whole = trained(loaded);
    const std::vector<float> shards = trained(normed_config({"batch_norm.scope=shard"}));
    REQUIRE(apart.size() == whole.size());
    // But for the running values, which are of the first worker alone.
    const std::size_t learned = whole.size() - 2 * 3;
    const auto same = [&](const std::vector<float>& a, const std::vector<float>& b) {
        return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(learned), b.begin());
    };
    CHECK_FALSE(same(apart, whole));
    CHECK(same(apart, shards));
    CHECK(apart != shards);
}

TEST_CASE("who shares a statistic is a part of that cause: where a sampler deals and nothing else differs, it is all") {
    for (const char* samples : {"data.samples=96", "data.samples=90"}) {  // the last batch of 24, and of 18
        CAPTURE(samples);
        const LoadedConfig loaded = normed_config({"batch_norm.scope=global", samples});
        const DataSplits data = open_data(loaded.config);
        const Facts facts = facts_of("ddp", loaded, 2);
        Cause cause = cause_named("batch norm over B/W", facts, loaded);
        CHECK(cause.why == "statistics of 12 samples that are 2 apart");
        const std::vector<float> alone = train_under(cause.rules, loaded.config, data).weights;
        CHECK(alone == train_under(scheme_rules(facts), loaded.config, data).weights);
        cause.rules.interleaved = false;
        CHECK(alone != train_under(cause.rules, loaded.config, data).weights);
    }
}

TEST_CASE("each rule alone makes another run") {
    // The twin of the case above: whatever is not Lockstep's rule shows.
    const LoadedConfig loaded = small_config({"schedule.name=cosine"});
    const DataSplits data = open_data(loaded.config);
    std::set<double> losses{
        train_under(lockstep_rules(facts_of("ddp", loaded, 2)), loaded.config, data).epochs.back().loss};
    std::size_t runs = 1;
    std::set<std::string> seen;
    for (const Scheme& scheme : schemes()) {
        std::vector<std::string> idle;
        for (const Cause& cause : causes_of(facts_of(scheme.name.data(), loaded, 2), loaded.config, idle)) {
            // The same words may stand for another rule elsewhere: whose schedule is counted, whose samples are read.
            if (!seen.insert(cause.name + cause.why).second) continue;
            CAPTURE(scheme.name, cause.name);
            losses.insert(train_under(cause.rules, loaded.config, data).epochs.back().loss);
            CHECK(losses.size() == ++runs);
        }
    }
    CHECK(runs >= 8);
}

TEST_CASE("clipping on each worker is another run, where anything is clipped") {
    const auto apart = [](const char* clip_norm) {
        const LoadedConfig loaded = small_config({std::string("optimizer.clip_norm=").append(clip_norm)});
        const DataSplits data = open_data(loaded.config);
        WorkerRules rules = lockstep_rules(facts_of("local-clip", loaded, 2));
        const std::vector<float> together = train_under(rules, loaded.config, data).weights;
        rules.clips_locally = true;
        return train_under(rules, loaded.config, data).weights != together;
    };
    CHECK(apart("0.2"));
    CHECK_FALSE(apart("1e6"));
}

TEST_CASE("a sum is the mean at so many times the learning rate, for plain gradient descent") {
    const LoadedConfig loaded = small_config({"optimizer.name=sgd"});
    WorkerRules sum = lockstep_rules(facts_of("horovod-sum", loaded, 2));
    sum.sum = true;
    const LoadedConfig faster = small_config({"optimizer.name=sgd", "optimizer.lr=0.2"});
    const DataSplits data = open_data(loaded.config);
    CHECK(train_under(sum, loaded.config, data).weights ==
          train_under(lockstep_rules(facts_of("ddp", faster, 2)), faster.config, data).weights);
}

TEST_CASE("updates in turn on the same weights are a sum for plain gradient descent, and not with momentum") {
    const auto apart = [](const char* optimizer) {
        const LoadedConfig loaded = small_config({std::string("optimizer.name=").append(optimizer)});
        const DataSplits data = open_data(loaded.config);
        const Facts facts = facts_of("tf-distributed-replicated", loaded, 2);
        const RunOutcome turns = train_under(scheme_rules(facts), loaded.config, data);
        WorkerRules once = scheme_rules(facts);
        once.applying = Applying::kOnce;
        return std::abs(turns.epochs.back().loss - train_under(once, loaded.config, data).epochs.back().loss);
    };
    CHECK(apart("sgd") < 1e-5);
    CHECK(apart("momentum") > 1e-3);
}

TEST_CASE("workers read what their rules say") {
    const EpochOrders orders{1, Shuffle::kNone, 1024, 10};
    const ShardPlan job(10, 4, 2, Layout::kBatch, LastBatch::kKeep);
    WorkerRules rules;
    rules.workers = 2;
    rules.batch = 2;
    const auto indices = [&](int worker, int64_t epoch = 0) {
        return read_by_worker(rules, orders, job, worker, epoch).indices;
    };
    using Indices = std::vector<int64_t>;
    CHECK(indices(0) == Indices{0, 1, 4, 5, 8});
    CHECK(indices(1) == Indices{2, 3, 6, 7, 9});
    rules.interleaved = true;
    CHECK(indices(0) == Indices{0, 2, 4, 6, 8});
    CHECK(indices(1) == Indices{1, 3, 5, 7, 9});
    rules.interleaved = false;
    rules.reading = Reading::kPaddedParts;
    CHECK(indices(1) == Indices{1, 3, 5, 7, 9});
    rules.workers = 3;
    CHECK(indices(2) == Indices{2, 5, 8, 1});
    rules.reading = Reading::kTrimmedParts;
    CHECK(indices(2) == Indices{2, 5});
    rules.workers = 2;
    rules.reading = Reading::kSameSamples;
    rules.wraps = true;
    CHECK(indices(0) == Indices{0, 1, 2, 3, 4, 5});
    CHECK(indices(1) == indices(0));
    CHECK(indices(0, 1) == Indices{6, 7, 8, 9});  // five rounds in two epochs, the sixth half of the third
    rules.reading = Reading::kShifted;
    CHECK(indices(1) == Indices{5, 6, 7, 8, 9, 0});
    rules.reading = Reading::kDealt;
    CHECK(indices(1) == Indices{2, 3, 6, 7, 0, 1});
    rules.wraps = false;
    rules.turns = true;
    CHECK(indices(0) == Indices{0, 1, 2, 3, 8, 9});
    CHECK(indices(1) == Indices{4, 5, 6, 7});
    rules.turns = false;
    rules.reading = Reading::kWhole;
    CHECK(indices(1) == Indices{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    const EpochOrders shuffled{1, Shuffle::kFull, 1024, 10};
    CHECK(read_by_worker(rules, shuffled, job, 0, 0).indices != read_by_worker(rules, shuffled, job, 1, 0).indices);
    rules.reading = Reading::kDealt;
    const ShardPlan drops(10, 4, 2, Layout::kBatch, LastBatch::kDrop);
    CHECK(read_by_worker(rules, orders, drops, 1, 0).indices == Indices{2, 3, 6, 7});
    const ShardPlan parts(10, 4, 2, Layout::kEpoch, LastBatch::kKeep);  // shards 0-4 and 5-9, dealt from in turn
    CHECK(read_by_worker(rules, orders, parts, 0, 0).indices == Indices{0, 1, 2, 3, 4});
    CHECK(read_by_worker(rules, orders, parts, 1, 0).indices == Indices{5, 6, 7, 8, 9});
}

TEST_CASE("an estimator's workers make W times the updates of an epoch") {
    const LoadedConfig loaded = small_config();
    const DataSplits data = open_data(loaded.config);
    const Facts facts = facts_of("estimator", loaded, 3);
    const RunOutcome outcome = train_under(scheme_rules(facts), loaded.config, data);
    CHECK(outcome.updates == 3 * 18);
    CHECK(outcome.updates == facts.theirs.steps);
    CHECK(train_under(scheme_rules(facts), loaded.config, data).weights == outcome.weights);  // in a seeded order
}

TEST_CASE("the comparison has Lockstep's run, every cause alone and all together, in text and JSON") {
    const LoadedConfig loaded = small_config({"optimizer.lr=0.05"});
    const Facts facts = facts_of("tf-distributed-replicated", loaded, 2);
    const Comparison c = compare(facts, loaded, open_data(loaded.config));
    CHECK(c.worlds == std::vector<int>{1, 2});
    REQUIRE(c.causes.size() == 3);
    CHECK(c.causes[0].name == "shift ratio 0");
    CHECK(c.causes[1].name == "sum for mean");
    CHECK(c.causes[2].name == "optimizer stepped W times");
    REQUIRE(c.idle.size() == 1);
    CHECK(c.idle[0] == "batch norm over B/W: mlp has none");
    CHECK(c.scheme.outcome.updates == facts.theirs.optimizer_steps_per_batch * facts.theirs.steps);
    const auto json = nlohmann::json::parse(comparison_json(c));
    CHECK(json["lockstep"]["epochs"].size() == 2);
    CHECK(json["lockstep"]["sha256"].get<std::string>().size() == 64);
    CHECK(json["causes"][1]["name"] == "sum for mean");
    CHECK(json["causes"][1].contains("loss_difference"));
    CHECK(json["scheme"]["epochs"][1]["accuracy"].is_number());
    CHECK_THAT(comparison_text(c), Catch::Contains("Test accuracy") && Catch::Contains("equal bytes"));
}

TEST_CASE("a run that leaves the finite numbers says at which update") {
    const LoadedConfig loaded = small_config({"optimizer.lr=1e30", "optimizer.name=sgd"});
    const RunOutcome outcome =
        train_under(lockstep_rules(facts_of("ddp", loaded, 2)), loaded.config, open_data(loaded.config));
    REQUIRE(outcome.diverged);
    CHECK(*outcome.diverged < 18);
}

TEST_CASE("what a comparison cannot be made of is refused before any training") {
    const auto refuses = [](const std::vector<std::string>& sets, int workers, const char* text) {
        const LoadedConfig loaded = small_config(sets);
        const Facts facts = facts_of("ddp", loaded, workers);
        CHECK_THROWS_WITH(compare(facts, loaded, open_data(loaded.config)), Catch::Contains(text));
    };
    refuses({}, 5, "batch.size = 24 is no multiple of 5 workers");
    refuses({"batch.size=72"}, 72, "72 workers in one process; it takes at most 64");
    refuses({"reduce.op=sum"}, 2, "reduce.op must be \"average\"");
    refuses({"schedule.name=plateau"}, 2, "schedule.name = \"plateau\"");
    refuses({"train.stop_metric=loss"}, 2, "train.stop_metric = \"loss\" follows each run's own evaluations");
    refuses({"train.stop_metric=loss"}, 2, "; leave it out, or add --set 'train.stop_metric=\"\"'");
    refuses({"reduce.algorithm=native"}, 2, "reduce.algorithm = \"native\" adds in an order of the transport's");
    refuses({"device.backend=cuda"}, 2, "trains on CPUs, and device.backend = \"cuda\"");
    LoadedConfig loaded = small_config();  // 9 steps an epoch
    loaded.config.train.epochs.reset();
    loaded.config.train.steps = 13;
    const DataSplits data = open_data(loaded.config);
    CHECK_THROWS_WITH(compare(facts_of("ddp", loaded, 2), loaded, data),
                      Catch::Contains("train.steps = 13 is no whole number of epochs, of 9 steps each") &&
                          Catch::Contains("train.steps to 18"));
    loaded.config.train.steps = 18;
    CHECK(compare(facts_of("ddp", loaded, 2), loaded, data).lockstep.outcome.updates == 18);
}

TEST_CASE("the test data are evaluated, without them the held-out samples, without these the training data") {
    const auto compared = [](const std::vector<std::string>& sets) {
        const LoadedConfig loaded = small_config(sets);
        const Comparison c = compare(facts_of("horovod-sum", loaded, 2), loaded, open_data(loaded.config));
        CHECK(c.lockstep.outcome.epochs.size() == 2);
        CHECK(c.scheme.outcome.epochs.size() == 2);
        return c.evaluated;
    };
    CHECK(compared({"data.validation=0.25"}) == "test");
    CHECK(compared({"data.validation=0.25", "data.test_samples=0"}) == "validation");
    CHECK(compared({"data.test_samples=0"}) == "training");
}

TEST_CASE("a worker's batch of its own is followed where it makes the job's, and else named") {
    const LoadedConfig loaded = small_config();
    Question q = question_of(loaded.config, data_facts(loaded.config));
    q.workers = 2;
    q.worker_batch = 24;
    CHECK_THROWS_WITH(compare(explain(scheme_named("ddp"), q), loaded, open_data(loaded.config)),
                      Catch::Contains("2 workers of --worker-batch 24 are no batch.size = 24"));
    q.worker_batch = 12;
    CHECK(compare(explain(scheme_named("ddp"), q), loaded, open_data(loaded.config)).causes.size() == 1);
}

TEST_CASE("a dropped last batch is dropped in Lockstep's run and wherever a rule does not say otherwise") {
    const LoadedConfig loaded = small_config({"batch.last=drop"});
    const Comparison c = compare(facts_of("tf-distributed-replicated", loaded, 2), loaded, open_data(loaded.config));
    CHECK(c.lockstep.outcome.updates == 16);
    CHECK(c.causes[1].outcome.updates == 16);   // a sum for the mean
    CHECK(c.scheme.outcome.updates == 2 * 17);  // batches that wrap: 406 samples in rounds of 24
}

}  // namespace
}  // namespace lockstep

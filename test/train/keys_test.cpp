// Every key of the config table keeps its word: one that promises to change no bit changes none, whatever it is set to
// and on whichever rank; one that is said to change bits does, where the job uses it. A new key without a case fails.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "comm/thread_communicator.hpp"
#include "config/key.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "io/safetensors.hpp"
#include "io/temp_folder.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Change = std::function<void(Config&)>;

Config base_config() {
    Job job;
    job.samples = 203;
    job.batch = 32;
    job.shards = 8;
    job.steps = 9;  // into the second epoch
    Config config = config_of(job).config;
    config.model.hidden = {17};
    config.data.block = 16;
    config.device.threads = 1;
    return config;
}

struct Run {
    std::string sha256;
    std::string metrics;  // without wall
    std::vector<std::byte> model;
};

/// Trains with `change` made on the ranks that `whom` names. With `out` on disk, else in memory.
Run train_ranks(const Config& config, int world, const Change& change, const std::function<bool(int)>& whom,
                const std::string& out = "", const std::string& resume_from = "") {
    set_log(LogLevel::kQuiet, false);
    const DataSplits data = open_data(config);
    Run result;
    std::mutex mutex;
    run_thread_world(world, [&](Communicator& comm) {
        LoadedConfig loaded;
        loaded.config = config;
        if (whom(comm.rank())) change(loaded.config);
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        options.out = out;
        if (!resume_from.empty()) {
            options.resume = ResumeMode::kPath;
            options.resume_path = resume_from;
        }
        TrainResult trained = train_on(comm, loaded, data, options);
        if (comm.rank() != 0) return;
        const std::scoped_lock lock(mutex);
        result = {trained.sha256, without_wall(trained.metrics), std::move(trained.model)};
    });
    return result;
}
Run train_with(const Config& config, int world, const std::string& out = "") {
    return train_ranks(
        config, world, [](Config&) {}, [](int) { return false; }, out);
}

/// Trains with a checkpoint after each 4th step and returns the path of the first.
std::string checkpoint_of(Config config, int world, const std::string& out) {
    config.checkpoint.every_steps = 4;
    config.checkpoint.keep = 9;
    train_with(config, world, out);
    return out + "/checkpoints/step-00000004";
}
Run resume_with(const Config& config, int world, const std::string& from) {
    return train_ranks(
        config, world, [](Config&) {}, [](int) { return false; }, "", from);
}

std::vector<float> weights_of(const Run& run) {
    const SafetensorsFile file = SafetensorsFile::parse(run.model, "model");
    std::vector<float> all;
    for (const TensorView& tensor : file.tensors()) {
        const std::size_t before = all.size();
        all.resize(before + tensor.bytes.size() / sizeof(float));
        std::memcpy(all.data() + before, tensor.bytes.data(), tensor.bytes.size());
    }
    return all;
}

bool everyone(int) {
    return true;
}
bool rank_one(int rank) {
    return rank == 1;
}

/// The values that a key which changes no bit is tried at.
std::map<std::string, std::vector<Value>> harmless_values(const TempFolder& folder) {
    std::vector<Value> isas;
    for (const std::string& isa : isas_here()) isas.emplace_back(isa);
    return {
        {"reduce.bucket_kib", {int64_t{1}, int64_t{3}, int64_t{65536}}},
        {"reduce.small_kib", {int64_t{0}, int64_t{1}, int64_t{65536}}},
        {"batch.micro", {int64_t{1}, int64_t{9}, int64_t{1000}}},
        {"checkpoint.every_steps", {int64_t{1}, int64_t{4}}},
        {"checkpoint.every_epochs", {int64_t{1}}},
        {"checkpoint.keep", {int64_t{1}, int64_t{9}}},
        {"checkpoint.best", {std::string("accuracy"), std::string("loss")}},
        {"eval.every_epochs", {int64_t{0}, int64_t{2}}},
        {"eval.every_steps", {int64_t{1}, int64_t{5}}},
        {"check.replicas_every", {int64_t{0}, int64_t{1}, int64_t{7}}},
        {"check.trace", {std::string("hash")}},
        {"log.every", {int64_t{1}, int64_t{7}, int64_t{1000}}},
        {"log.grad_norm", {true}},
        {"log.dir", {folder / "logs"}},
        {"device.backend", {std::string("cpu")}},
        {"device.threads", {int64_t{0}, int64_t{2}, int64_t{5}}},
        {"device.isa", isas},
        {"device.streams", {int64_t{1}, int64_t{4}}},
        {"device.graphs", {true}},
        {"device.transport", {std::string("nccl"), std::string("staged")}},
        {"device.timeout_s", {60.5, 1e9}},
        {"device.input_threads", {int64_t{1}, int64_t{3}}},
        {"device.cache", {folder / "cache"}},
    };
}

/// Whether the key has a value other than its default whose feature is built.
bool has_another_value(const Key& key) {
    if (key.later == "*") return false;
    if (key.choices.empty()) return true;
    for (const std::string_view choice : choices_of(key)) {
        const Value value = std::string(choice);
        if (value != default_of(key) && is_built(key, value)) return true;
    }
    return false;
}

/// A key that changes bits: what makes the job use it, and another value.
struct Harmful {
    Change use;
    Value value;
};

/// A convolution with batch norm, then the classes.
std::vector<ConfigTable> normed_layers(int64_t channels) {
    return {{{{"kind", std::string("conv")},
              {"channels", channels},
              {"kernel", std::vector<int64_t>{3}},
              {"stride", std::vector<int64_t>{2}},
              {"norm", true},
              {"activation", std::string("relu")}},
             ""},
            {{{"kind", std::string("dense")}, {"units", int64_t{10}}}, ""}};
}

std::map<std::string, Harmful> harmful_values() {
    const Change as_it_is = [](Config&) {};
    const auto optimizer = [](const char* name) {
        return [name](Config& c) {
            c.optimizer.name = name;
            c.optimizer.lr = 0.002;
        };
    };
    const auto schedule = [](const char* name) {
        return [name](Config& c) {
            c.schedule.name = name;
            c.schedule.every_epochs = 0.5;
        };
    };
    const Change small_epsilon = [](Config& c) {
        c.optimizer.name = "rmsprop";
        c.optimizer.epsilon = 1e-3;
    };
    // Accuracy is seldom better after every step.
    const Change watched = [](Config& c) {
        c.eval = {0, 1};
        c.schedule.name = "plateau";
        c.schedule.patience = 1;
    };
    const Change watched_accuracy = [watched](Config& c) {
        watched(c);
        c.schedule.metric = "accuracy";
    };
    const Change stopping = [](Config& c) {
        c.eval = {0, 1};
        c.train.stop_patience = 1;
    };
    const Change stopping_early = [stopping](Config& c) {
        stopping(c);
        c.train.stop_metric = "accuracy";
    };
    const Change piecewise = [](Config& c) {
        c.schedule.name = "piecewise";
        c.schedule.boundaries = {0.5};
        c.schedule.values = {0.05, 0.01};
    };
    const Change decayed = [](Config& c) { c.optimizer.weight_decay = 0.01; };
    const Change lenet = [](Config& c) { c.model.name = "lenet"; };
    const Change normed = [](Config& c) {
        c.model.name = "custom";
        c.model.layers = normed_layers(3);
    };
    const Change cropped = [](Config& c) { c.augment.resized_crop = true; };
    using Sizes = std::vector<int64_t>;
    using Numbers = std::vector<double>;
    return {
        {"seed", {as_it_is, int64_t{2}}},
        {"data.samples", {as_it_is, int64_t{204}}},
        {"data.classes", {as_it_is, int64_t{7}}},
        {"data.shape", {as_it_is, Sizes{12, 6, 2}}},
        {"data.mean", {as_it_is, Numbers{0.25}}},
        {"data.std", {as_it_is, Numbers{0.5}}},
        {"data.shuffle", {as_it_is, std::string("block")}},
        {"data.block", {[](Config& c) { c.data.shuffle = "block"; }, int64_t{8}}},
        {"augment.pad_crop", {as_it_is, int64_t{2}}},
        {"augment.flip", {as_it_is, true}},
        {"augment.resized_crop", {as_it_is, true}},
        {"augment.scale", {cropped, Numbers{0.25, 0.5}}},
        {"augment.ratio", {cropped, Numbers{0.5, 0.625}}},
        {"augment.brightness", {as_it_is, 0.25}},
        {"augment.contrast", {as_it_is, 0.25}},
        {"augment.saturation",
         {[](Config& c) {
              c.data.shape = {12, 12, 3};
          },
          0.25}},
        {"augment.cutout", {as_it_is, int64_t{4}}},
        {"data.validation", {as_it_is, 0.25}},
        {"model.name", {as_it_is, std::string("lenet")}},
        {"model.hidden", {as_it_is, Sizes{17, 5}}},
        {"model.channels", {lenet, Sizes{3, 6}}},
        {"model.dropout", {as_it_is, 0.25}},
        {"model.flavor", {lenet, std::string("tf")}},
        {"model.layers", {normed, normed_layers(4)}},
        {"batch_norm.scope", {normed, std::string("global")}},
        {"batch_norm.momentum", {normed, 0.5}},
        {"batch_norm.epsilon", {normed, 0.125}},
        {"batch_norm.unbiased", {normed, true}},
        {"train.loss", {[](Config& c) { c.data.classes = 2; }, std::string("sigmoid")}},
        {"train.label_smoothing", {as_it_is, 0.25}},
        {"batch.size", {as_it_is, int64_t{31}}},
        {"batch.shards", {as_it_is, int64_t{4}}},
        {"batch.layout", {as_it_is, std::string("epoch")}},
        {"batch.last", {as_it_is, std::string("drop")}},
        {"train.epochs",
         {[](Config& c) {
              c.train.epochs = 1;
              c.train.steps.reset();
          },
          int64_t{2}}},
        {"train.steps", {as_it_is, int64_t{10}}},
        {"optimizer.name", {as_it_is, std::string("nesterov")}},
        {"optimizer.lr", {as_it_is, 0.04}},
        {"optimizer.momentum", {as_it_is, 0.8}},
        {"optimizer.beta1", {optimizer("adam"), 0.8}},
        {"optimizer.beta2", {optimizer("adamw"), 0.99}},
        {"train.stop_metric", {stopping, std::string("accuracy")}},
        {"train.stop_patience", {stopping_early, int64_t{9}}},
        {"optimizer.rho", {optimizer("rmsprop"), 0.8}},
        {"optimizer.rmsprop_momentum", {optimizer("rmsprop"), 0.5}},
        {"optimizer.initial", {optimizer("adagrad"), 0.5}},
        {"optimizer.epsilon", {optimizer("adam"), 1e-3}},
        {"optimizer.epsilon_inside", {small_epsilon, true}},
        {"optimizer.trust", {optimizer("lars"), 0.01}},
        {"optimizer.weight_decay", {as_it_is, 0.01}},
        {"optimizer.l2", {as_it_is, 0.01}},
        {"optimizer.decay", {decayed, std::string("weights")}},
        {"optimizer.clip_norm", {as_it_is, 0.125}},
        {"schedule.name", {as_it_is, std::string("cosine")}},
        {"schedule.warmup_epochs", {as_it_is, 1.0}},
        {"schedule.every_epochs", {schedule("step"), 1.0}},
        {"schedule.factor", {schedule("step"), 0.5}},
        {"schedule.boundaries", {piecewise, Numbers{0.25}}},
        {"schedule.values", {piecewise, Numbers{0.05, 0.02}}},
        {"schedule.end", {schedule("linear"), 0.01}},
        {"schedule.power", {schedule("poly"), 2.0}},
        {"schedule.rate", {schedule("exponential"), 0.5}},
        {"schedule.staircase", {schedule("exponential"), true}},
        {"schedule.metric", {watched, std::string("accuracy")}},
        {"schedule.patience", {watched_accuracy, int64_t{3}}},
        {"schedule.min_lr", {watched_accuracy, 0.04}},
        {"reduce.op", {as_it_is, std::string("sum")}},
        {"reduce.algorithm", {as_it_is, std::string("native")}},
    };
}

/// Of effect kBits on GPUs alone: there is nothing to train with here.
const std::set<std::string> kOfGpus{"device.arithmetic", "device.precision"};

/// Of effect kBits, but used by other formats than that of these runs (tables_test and pictures_test train on them), or
/// by the evaluation alone.
const std::set<std::string> kUnused{
    "data.label",
    "data.image_feature",
    "data.label_feature",
    "data.test_samples",
    "data.columns",
    "data.header",
    "data.separator",
    "data.missing",
    "data.comment",
    "data.skip_lines",
    "data.features",
    "data.label_column",
    "data.x",
    "data.y",
};

}  // namespace

TEST_CASE("keys that promise to change no bit change none: on all ranks, on one, or on resume") {
    const Config base = base_config();
    const Run expected = train_with(base, 3);
    REQUIRE(train_with(base, 1).sha256 == expected.sha256);
    const TempFolder folder;
    const std::string checkpoint = checkpoint_of(base, 1, folder / "base");
    const auto cases = harmless_values(folder);
    for (const Key& key : config_keys()) {
        if (key.effect != KeyEffect::kShared && key.effect != KeyEffect::kPerRank) continue;
        const std::string name(key.name);
        INFO("key " << name);
        if (!cases.contains(name)) {
            // Nothing to try as long as only the default is built.
            CHECK_FALSE(has_another_value(key));
            continue;
        }
        for (const Value& value : cases.at(name)) {
            INFO("value " << toml_text(value));
            const Change change = [&](Config& config) {
                if (const Key* partner = partner_of(key)) partner->field.set(config, int64_t{0});
                key.field.set(config, value);
            };
            Config changed = base;
            change(changed);
            CHECK(resume_with(changed, 2, checkpoint).sha256 == expected.sha256);
            for (const auto whom : {everyone, rank_one}) {
                INFO((whom == everyone ? "on all ranks" : "on rank 1"));
                const Run run = train_ranks(base, 3, change, whom);
                CHECK(run.sha256 == expected.sha256);
                // [log] and [eval] decide which lines there are; nothing else changes even a byte of the metrics.
                const std::string_view section = section_of(key);
                if ((section == "log" && name != "log.dir") || section == "eval") {
                    CHECK((run.metrics != expected.metrics) == (whom == everyone));
                } else {
                    CHECK(run.metrics == expected.metrics);
                }
            }
        }
    }
}

TEST_CASE("how often checkpoints are written, and how many are kept, changes no bit") {
    const TempFolder folder;
    const Run expected = train_with(base_config(), 3);
    int number = 0;
    for (const auto& [steps, epochs, keep, left] :
         std::vector<std::array<int64_t, 4>>{{0, 0, 3, 1}, {1, 0, 1, 1}, {2, 0, 3, 3}, {4, 0, 9, 3}, {0, 1, 9, 2}}) {
        Config config = base_config();
        config.checkpoint.every_steps = steps;
        config.checkpoint.every_epochs = epochs;
        config.checkpoint.keep = keep;
        const std::string out = folder / std::to_string(number++);
        const Run run = train_with(config, 3, out);
        const std::vector<std::byte> metrics = read_file(out + "/metrics.jsonl");
        INFO("every " << steps << " steps, " << epochs << " epochs, keep " << keep);
        CHECK(run.sha256 == expected.sha256);
        CHECK(without_wall(text_of(metrics)) == expected.metrics);
        int64_t found = 0;
        for (const std::string& name : TempFolder::names_in(out + "/checkpoints")) found += name.starts_with("step-");
        CHECK(found == left);
    }
}

TEST_CASE("keys that are said to change bits do, where the job uses them, and may not differ on resume") {
    const TempFolder folder;
    const auto cases = harmful_values();
    for (const Key& key : config_keys()) {
        if (key.effect != KeyEffect::kBits) continue;
        const std::string name(key.name);
        INFO("key " << name);
        if (kUnused.contains(name) || kOfGpus.contains(name) || name == "data.format") continue;
        if (!cases.contains(name)) {
            CHECK_FALSE(has_another_value(key));
            continue;
        }
        const auto& [use, value] = cases.at(name);
        Config left = base_config();
        use(left);
        Config right = left;
        key.field.set(right, value);
        REQUIRE(key.field.get(left) != value);
        const int world = name == "reduce.algorithm" ? 3 : 1;
        CHECK(train_with(left, world).sha256 != train_with(right, world).sha256);
        // More steps are no other run: train.steps and epochs may grow.
        if (name == "train.steps" || name == "train.epochs") continue;
        const std::string checkpoint = checkpoint_of(left, 1, folder / name);
        const auto refused = caught([&] { resume_with(right, 1, checkpoint); });
        REQUIRE(refused);
        CHECK(refused->kind == ErrorKind::kUsage);
        CHECK(refused->says(name));
    }
}

TEST_CASE("of the keys that this job does not use, none changes a weight, but none may differ on resume") {
    const std::string expected = train_with(base_config(), 1).sha256;
    const TempFolder folder;
    const std::string checkpoint = checkpoint_of(base_config(), 1, folder / "base");
    const std::map<KeyType, Value> other{
        {KeyType::kInteger, int64_t{33}},
        {KeyType::kNumber, 0.625},
        {KeyType::kString, std::string("z")},
        {KeyType::kNumbers, std::vector<double>{0.625}},
        {KeyType::kStrings, std::vector<std::string>{"x"}},
        {KeyType::kTables, std::vector<ConfigTable>{{{{"name", std::string("x")}}, ""}}},
    };
    const auto another = [&](const Key& key) -> Value {
        if (key.field.type == KeyType::kBool) return !std::get<bool>(default_of(key));
        return key.choices.empty() ? other.at(key.field.type) : Value(std::string(choices_of(key).back()));
    };
    for (const std::string& name : kUnused) {
        const Key& key = key_of(name);
        Config config = base_config();
        key.field.set(config, another(key));
        INFO("key " << name);
        CHECK(train_with(config, 1).sha256 == expected);
        const auto refused = caught([&] { resume_with(config, 1, checkpoint); });
        CHECK((refused && refused->kind == ErrorKind::kUsage && refused->says(name)));
    }
}

TEST_CASE("native sums: equal bits at an equal number of ranks, the canonical ones at one, and near them elsewhere") {
    Config canonical = base_config();
    canonical.model.hidden = {33, 17};
    Config native = canonical;
    native.reduce.algorithm = "native";
    const Run tree = train_with(canonical, 1);
    CHECK(train_with(native, 1).sha256 == tree.sha256);
    const std::vector<float> expected = weights_of(tree);
    for (const int world : {2, 3, 5}) {
        const Run once = train_with(native, world);
        CHECK(train_with(native, world).sha256 == once.sha256);
        // A sum is off by at most 2 (V - 1) 2^-24 of the sum of its terms' sizes (lib/comm/native_reducer.cpp): here
        // 8.4e-7 of a mean gradient well below 1. Nine steps of rate 0.05, whose momentum makes at most 0.5 of each,
        // keep weights within 9 * 0.5 * 8.4e-7 < 4e-6 of each other, and as much again for what the first steps'
        // deviations do to later gradients.
        const std::vector<float> found = weights_of(once);
        REQUIRE(found.size() == expected.size());
        REQUIRE(std::all_of(found.begin(), found.end(), [](float w) { return std::isfinite(w); }));
        double worst = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            worst = std::max(worst, std::abs(double{found[i]} - double{expected[i]}));
        }
        INFO("world " << world << ": at most " << worst);
        CHECK(worst < 8e-6);
        // Two ranks can only add left and right, which is what the tree does.
        CHECK((worst > 0) == (world > 2));
    }
}

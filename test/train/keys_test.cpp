// Every key of the config table keeps its word: one that promises to change no bit changes none, whatever it is set to
// and on whichever rank; one that is said to change bits does, where the job uses it. A new key without a case fails.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "config/key.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "io/safetensors.hpp"
#include "io/temp_folder.hpp"
#include "train/key_values.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

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
    TrainOptions options = resume_from.empty() ? TrainOptions() : resumed_from(resume_from);
    options.out = out;
    TrainResult trained =
        train_world(config, open_data(config), world, options, [&](LoadedConfig& own, TrainOptions&, int rank) {
            if (whom(rank)) change(own.config);
        });
    return {trained.sha256, without_wall(trained.metrics), std::move(trained.model)};
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

bool has_another_value(const Key& key) {
    if (key.choices.empty()) return true;
    for (const std::string_view choice : choices_of(key)) {
        const Value value = std::string(choice);
        if (value != default_of(key)) return true;
    }
    return false;
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

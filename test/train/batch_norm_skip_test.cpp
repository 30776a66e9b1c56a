// Batch norm where scaled gradients overflow: an update that is left out leaves the running values alone, as it does
// the weights, and the same updates are left out at any number of ranks.
#include <catch2/catch.hpp>
#include <sstream>

#include "io/safetensors.hpp"
#include "train/checkpoint.hpp"
#include "train/legs.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Running values of a checkpoint, one after the other.
std::string running_values(const std::string& path) {
    const SafetensorsFile file = SafetensorsFile::read(path + "/model.safetensors");
    std::string bytes;
    for (const TensorView& tensor : file.tensors()) {
        if (tensor.name.find(".running_") != std::string::npos)
            bytes += std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
    return bytes;
}

/// A normed path of small numbers beside a linear one of pixels so large that its scaled gradients are not finite.
Config overflowing_config(const std::string& scope) {
    const ConfigSources sources{
        {},
        {},
        {"data.format=synthetic", "data.samples=40", "data.test_samples=0", "data.shape=[4,4,1]", "data.classes=3",
         "data.std=[1e-32]", "model.name=custom", "batch.size=10", "batch.shards=4", "train.steps=8",
         "optimizer.lr=1e-3", "optimizer.clip_norm=1", "check.replicas_every=0", "checkpoint.every_steps=1",
         "checkpoint.keep=20", "log.every=1", "device.backend=cpu", "device.threads=1"},
        "."};
    Config config = load_config(sources).config;
    config.batch_norm.scope = scope;
    const auto text = [](const char* words) { return std::string(words); };
    const auto from = [](const char* name) { return std::vector<std::string>{name}; };
    config.model.layers = {
        {{{"kind", text("sigmoid")}, {"name", text("small")}, {"from", from("input")}}, ""},
        {{{"kind", text("batch_norm")}}, ""},
        {{{"kind", text("flatten")}}, ""},
        {{{"kind", text("dense")}, {"name", text("normed")}, {"units", int64_t{3}}}, ""},
        {{{"kind", text("flatten")}, {"name", text("flat")}, {"from", from("input")}}, ""},
        {{{"kind", text("dense")}, {"name", text("linear")}, {"units", int64_t{3}}}, ""},
        {{{"kind", text("add")}, {"from", std::vector<std::string>{"normed", "linear"}}}, ""},
    };
    return config;
}

}  // namespace

TEST_CASE("an update that is left out leaves the running values alone, in both scopes and at any number of ranks") {
    for (const char* const scope : {"shard", "global"}) {
        CAPTURE(scope);
        const Config config = overflowing_config(scope);
        const DataSplits data = open_data(config);
        std::string expected;
        for (const int world : {1, 3, 4}) {
            const TemporaryFolder folder;
            TrainOptions options;
            options.out = folder / "run";
            options.loss_scale = LossScaleRules{16777216, 3};
            train_world(config, data, world, options);
            const std::string metrics = without_wall(text_of(folder / "run/metrics.jsonl"));
            if (expected.empty()) expected = metrics;
            CHECK(metrics == expected);
            int skipped = 0, made = 0;
            std::istringstream lines(metrics);
            std::string before;
            for (std::string line; std::getline(lines, line);) {
                if (!line.starts_with(R"({"event":"step")")) continue;
                const bool left_out = line.find(R"("skipped":true)") != std::string::npos;
                const std::string now =
                    running_values(folder / ("run/checkpoints/" + checkpoint_name(1 + skipped + made)));
                REQUIRE(!now.empty());
                if (!before.empty()) CHECK((now == before) == left_out);
                before = now;
                ++(left_out ? skipped : made);
            }
            CHECK(skipped > 1);
            CHECK(made > 1);
        }
    }
}

#include "train/config_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nn/layer_list.hpp"
#include "nn/zoo.hpp"
#include "train/forecast.hpp"
#include "train/initial_weights.hpp"

namespace lockstep {
namespace {

/// By the names of things alone: shapes may not be known.
bool has_batch_norm(const Config::Model& model) {
    if (model.name == "googlenet") return model.flavor != "tf";
    if (model.name != "custom") return model.name.starts_with("resnet");
    return std::any_of(model.layers.begin(), model.layers.end(), [](const ConfigTable& layer) {
        const ConfigTable::Value* kind = layer.find("kind");
        const ConfigTable::Value* norm = layer.find("norm");
        return (kind != nullptr &&
                (*kind == ConfigTable::Value("batch_norm") || *kind == ConfigTable::Value("residual"))) ||
               (norm != nullptr && *norm == ConfigTable::Value(true));
    });
}

/// With statistics of the global batch all samples of a rank must be in memory at once, which few ranks' are not.
std::vector<std::string> warn_of_passes(const Config& config) {
    const int64_t micro = config.batch.micro, shards = config.batch.shards;
    if (micro == 0 || config.batch_norm.scope != "global" || !has_batch_norm(config.model)) return {};
    const int64_t shard = (config.batch.size + shards - 1) / shards;
    const int64_t together = std::max<int64_t>(1, micro / shard);  // shards in memory at once
    const int64_t ranks = (shards + together - 1) / together;
    if (ranks == 1) return {};
    return {
        fmt::format("batch.micro = {}: with batch_norm.scope = \"global\" all samples of a rank must be in memory at "
                    "once, so that fewer than {} ranks are refused; set batch.micro = 0, or batch_norm.scope = "
                    "\"shard\"",
                    micro, ranks)};
}

}  // namespace

void check_weights(const Config& config, const DataFacts& facts) {
    if (config.model.weights.empty()) return;
    const Model model = build_model(model_spec(config, facts.shape, facts.classes, facts.columns));
    check_initial_weights(config.model.weights, &model.parameters);
}

std::vector<std::string> check_without_data(const Config& config) {
    if (config.data.format == "synthetic") {
        const DataFacts facts = data_facts(config);
        ForecastOptions options;
        options.worlds = {1};
        options.any_passes = true;
        static_cast<void>(make_forecast(config, facts, options));
        check_weights(config, facts);
    } else {
        if (config.model.name == "custom") static_cast<void>(list_layers(config.model.layers));
        check_initial_weights(config.model.weights);
    }
    return warn_of_passes(config);
}

}  // namespace lockstep

#include "train/recipe.hpp"

#include <fmt/format.h>

namespace lockstep::test {
namespace {

using Strings = std::vector<std::string>;

const std::vector<Strings> kValues{
    {"sgd", "momentum", "nesterov", "adagrad", "adagrad_inside", "rmsprop", "rmsprop_inside", "rmsprop_momentum",
     "rmsprop_momentum_inside", "adam", "adamw", "lars", "lamb"},
    {"constant", "step", "piecewise", "exponential", "exponential_stairs", "cosine", "linear", "poly", "plateau"},
    {"no_warmup", "warmup"},
    {"no_norm", "shard", "global"},
    {"loss", "accuracy", "top5", "auc", "precision", "recall"},
    {"goes_on", "stops", "best", "stops_best"},
    {"no_dropout", "dropout"},
    {"plain", "augmented"},
    {"full", "block"},
    {"test", "validation"},
    {"batch", "epoch"},
    {"keep", "drop"},
    {"no_decay", "decay"},
};

const std::string& value_of(const Recipe& recipe, Factor factor) {
    return values_of(factor).at(recipe.at(static_cast<std::size_t>(factor)));
}

bool is(const Recipe& recipe, Factor factor, const std::string& value) {
    return value_of(recipe, factor) == value;
}

void set_optimizer(Config& c, const std::string& choice) {
    c.optimizer.name = choice.substr(0, choice.find('_'));
    const bool own_scale = c.optimizer.name.starts_with("ada") || c.optimizer.name == "rmsprop";
    c.optimizer.lr = own_scale ? 0.02 : c.optimizer.name == "lamb" ? 0.1 : 0.2;
    c.optimizer.trust = 0.02;
    c.optimizer.epsilon_inside = choice.ends_with("_inside");
    c.optimizer.initial = c.optimizer.epsilon_inside ? 0.1 : 0;
    c.optimizer.rmsprop_momentum = choice.find("momentum") != std::string::npos ? 0.5 : 0;
}

/// Rates that change several times in less than three epochs.
void set_schedule(Config& c, const std::string& choice) {
    c.schedule.name = choice.substr(0, choice.find('_'));
    c.schedule.every_epochs = 0.6;
    c.schedule.factor = 0.5;
    c.schedule.boundaries = {0.7, 1.3, 2.1};
    c.schedule.values = {c.optimizer.lr, c.optimizer.lr / 2, c.optimizer.lr / 3, c.optimizer.lr / 5};
    c.schedule.rate = 0.7;
    c.schedule.staircase = choice.ends_with("stairs");
    c.schedule.power = 1.5;
    c.schedule.end = c.optimizer.lr / 50;
    c.schedule.patience = 1;
}

/// A convolution, perhaps normed, and two dense layers with dropout between them.
std::vector<ConfigTable> layers(const std::string& norm, double dropout, int64_t classes) {
    using Sizes = std::vector<int64_t>;
    const auto text = [](const char* words) { return std::string(words); };
    return {{{{"kind", text("conv")},
              {"channels", int64_t{4}},
              {"kernel", Sizes{3}},
              {"stride", Sizes{2}},
              {"norm", norm != "no_norm"},
              {"activation", text("relu")}},
             ""},
            {{{"kind", text("flatten")}}, ""},
            {{{"kind", text("dense")}, {"units", int64_t{9}}, {"activation", text("relu")}}, ""},
            {{{"kind", text("dropout")}, {"rate", dropout}}, ""},
            {{{"kind", text("dense")}, {"units", classes}}, ""}};
}

}  // namespace

const std::vector<std::string>& values_of(Factor factor) {
    return kValues.at(static_cast<std::size_t>(factor));
}

std::vector<std::size_t> recipe_levels() {
    std::vector<std::size_t> levels;
    for (const Strings& values : kValues) levels.push_back(values.size());
    return levels;
}

std::string describe(const Recipe& recipe) {
    std::string words;
    for (std::size_t f = 0; f < recipe.size(); ++f) words += kValues[f][recipe[f]] + " ";
    return words;
}

Config config_of(const Recipe& recipe) {
    const std::string metric = value_of(recipe, Factor::kMetric), decides = value_of(recipe, Factor::kDecides);
    Config c;
    c.data.format = "synthetic";
    c.data.samples = 67;
    c.data.test_samples = 23;
    c.data.shape = {6, 6, 3};
    c.data.classes = metric == "loss" || metric == "accuracy" || metric == "top5" ? 7 : 2;
    c.data.shuffle = value_of(recipe, Factor::kShuffle);
    c.data.block = 8;
    c.data.validation = is(recipe, Factor::kValidation, "validation") ? 0.2 : 0;
    if (is(recipe, Factor::kAugment, "augmented")) {
        c.augment.pad_crop = 1;
        c.augment.flip = true;
        c.augment.brightness = c.augment.saturation = 0.3;
        c.augment.cutout = 2;
    }
    const std::string norm = value_of(recipe, Factor::kNorm);
    c.model.name = "custom";
    c.model.layers = layers(norm, is(recipe, Factor::kDropout, "dropout") ? 0.3 : 0, c.data.classes);
    c.batch_norm.scope = norm == "global" ? "global" : "shard";
    c.batch.size = 16;
    c.batch.shards = 8;
    c.batch.layout = value_of(recipe, Factor::kLayout);
    c.batch.last = value_of(recipe, Factor::kLast);
    c.train.steps = 13;
    set_optimizer(c, value_of(recipe, Factor::kOptimizer));
    set_schedule(c, value_of(recipe, Factor::kSchedule));
    c.schedule.warmup_epochs = is(recipe, Factor::kWarmup, "warmup") ? 0.9 : 0;
    if (is(recipe, Factor::kDecay, "decay")) {
        c.optimizer.clip_norm = 0.5;
        c.optimizer.weight_decay = 1e-3;
        c.optimizer.l2 = 1e-3;
    }
    c.schedule.metric = metric;
    if (decides.starts_with("stops")) c.train.stop_metric = metric;
    if (decides.ends_with("best")) c.checkpoint.best = metric;
    c.train.stop_patience = 3;
    c.eval.every_epochs = 1;
    c.eval.every_steps = 2;
    c.log.every = 2;
    c.log.grad_norm = true;
    c.device.backend = "cpu";
    c.device.threads = 1;
    c.device.timeout_s = 300;
    return c;
}

}  // namespace lockstep::test

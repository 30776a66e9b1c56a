#include "train/key_values.hpp"

#include "config/config.hpp"
#include "train/point.hpp"

namespace lockstep::test {
namespace {

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

}  // namespace

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

}  // namespace lockstep::test

// The learning rates of an imported job, epoch by epoch, beside PyTorch's schedulers stepped as their scripts step
// them.
#include <toml++/toml.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "config/config.hpp"
#include "explain/import_line.hpp"
#include "optim/schedule.hpp"
#include "train/settings.hpp"

namespace lockstep {
namespace {

/// LinearLR or ConstantLR, then a main scheduler from its own epoch 0 on, as SequentialLR has it.
double torch_rate(int64_t epoch, double lr, int64_t warmup, bool linear, double decay,
                  const std::function<double(int64_t)>& main) {
    if (epoch >= warmup) return main(epoch - warmup);
    if (!linear) return lr * decay;
    double rate = lr * decay;  // LinearLR's own recursion
    for (int64_t e = 1; e <= epoch; ++e) {
        const auto t = static_cast<double>(warmup);
        rate *= 1 + (1 - decay) / (t * decay + static_cast<double>(e - 1) * (1 - decay));
    }
    return rate;
}

/// The rate of the first and of the last update of an epoch of the config.
std::pair<double, double> our_rates(const ImportedConfig& imported, int64_t epoch) {
    const toml::table t = toml::parse(imported.toml);
    ScheduleSpec spec;
    spec.lr = *t["optimizer"]["lr"].value<double>();
    spec.name = *t["schedule"]["name"].value<std::string>();
    spec.warmup_epochs = t["schedule"]["warmup_epochs"].value_or(0.0);
    spec.every_epochs = t["schedule"]["every_epochs"].value_or(10.0);
    spec.factor = t["schedule"]["factor"].value_or(0.1);
    spec.rate = t["schedule"]["rate"].value_or(0.96);
    spec.staircase = t["schedule"]["staircase"].value_or(false);
    for (const char* list : {"boundaries", "values"}) {
        const toml::array* values = t["schedule"][list].as_array();
        for (std::size_t i = 0; values != nullptr && i < values->size(); ++i) {
            (*list == 'b' ? spec.boundaries : spec.values).push_back(*(*values)[i].value<double>());
        }
    }
    spec.batch = 10;
    spec.samples_per_epoch = 57;
    spec.steps_per_epoch = 6;
    spec.total_steps = 6 * *t["train"]["epochs"].value<int64_t>();
    const Schedule schedule(spec);
    return {schedule.lr_double(epoch * 6 + 1), schedule.lr_double(epoch * 6 + 6)};
}

TEST_CASE("torchvision's warm-up and the schedule behind it are its rates, in every epoch") {
    const auto step = [](int64_t e) { return 0.5 * std::pow(0.1, static_cast<double>(e / 30)); };
    const auto fall = [](int64_t e) { return 0.5 * std::pow(0.9, static_cast<double>(e)); };
    const auto wave = [](int64_t e) { return 0.5 * (1 + std::cos(std::acos(-1.0) * static_cast<double>(e) / 85)) / 2; };
    struct Row {
        const char* flags;
        int64_t warmup;
        bool linear;
        double decay;
        std::function<double(int64_t)> main;
    };
    const std::vector<Row> rows = {
        {"--lr-warmup-epochs 5 --lr-warmup-method linear --lr-warmup-decay 0.01", 5, true, 0.01, step},
        {"--lr-warmup-epochs 5 --lr-warmup-method linear", 5, true, 0.01, step},
        {"--lr-warmup-epochs 5", 5, false, 0.01, step},  // constant is the script's default
        {"--lr-warmup-epochs 7 --lr-warmup-method constant --lr-warmup-decay 0.25", 7, false, 0.25, step},
        {"--lr-warmup-epochs 5 --lr-warmup-method linear --lr-scheduler exponentiallr --lr-gamma 0.9", 5, true, 0.01,
         fall},
        {"--lr-warmup-epochs 5 --lr-scheduler CosineAnnealingLR", 5, false, 0.01, wave},
        {"--lr-scheduler steplr", 0, true, 1, step},
        {"--lr-scheduler exponentiallr --lr-gamma 0.9", 0, true, 1, fall},
    };
    for (const Row& row : rows) {
        CAPTURE(row.flags);
        const ImportedConfig config = import_line(
            "ddp",
            std::string("torchrun --nproc_per_node=2 train.py --model resnet18 --lr 0.5 --epochs 90 ") + row.flags);
        for (int64_t epoch = 0; epoch < 90; ++epoch) {
            CAPTURE(epoch);
            const double theirs = torch_rate(epoch, 0.5, row.warmup, row.linear, row.decay, row.main);
            const auto [first, last] = our_rates(config, epoch);
            CHECK(first == Approx(theirs).epsilon(1e-12));
            CHECK(last == first);
        }
    }
}

TEST_CASE("drops come at warm-up + k steps, and none behind the last epoch") {
    const ImportedConfig config =
        import_line("ddp",
                    "torchrun --nproc_per_node=2 train.py --model resnet18 --lr 0.5 --epochs 60 --lr-warmup-epochs 2 "
                    "--lr-warmup-method linear --lr-warmup-decay 0.1");
    CHECK_THAT(config.toml, Catch::Contains("boundaries = [1.0, 2.0, 32.0]") &&
                                Catch::Contains("values = [0.05, 0.275, 0.5, 0.05]"));
}

TEST_CASE("what a warm-up here cannot do is told, and a method that is none is refused") {
    const auto import = [](const char* flags) {
        return import_line("ddp", std::string("torchrun --nproc_per_node=1 train.py --model resnet18 ").append(flags));
    };
    const ImportedConfig wave = import(
        "--lr-scheduler cosineannealinglr --lr-warmup-epochs 5 --lr-warmup-method linear --lr-warmup-decay 0.033");
    REQUIRE(wave.changed.size() == 1);
    CHECK(wave.changed[0] ==
          "--lr-warmup-epochs 5, linear, from 0.033 of the rate: there once an epoch, here at every "
          "update and from 0");
    CHECK_THAT(wave.toml, Catch::Contains("warmup_epochs = 5.0"));
    CHECK_THAT(import("--lr-warmup-decay 0.1").toml,
               Catch::Contains("# nothing to do here: --lr-warmup-decay 0.1: no --lr-warmup-epochs, there too"));
    CHECK_THROWS_WITH(import("--lr-warmup-epochs 5 --lr-warmup-method cubic"),
                      Catch::Contains("it is linear or constant"));
    const ImportedConfig other = import("--warmup-epochs 2.5");
    REQUIRE(other.changed.size() == 1);
    CHECK_THAT(other.changed[0], Catch::StartsWith("--warmup-epochs 2.5: not torchvision's; taken as linear from 0"));
    // More rates than a list should have.
    const ImportedConfig many =
        import("--lr-warmup-epochs 5 --epochs 5000 --lr-scheduler exponentiallr --lr-gamma 0.999");
    REQUIRE(many.refused.size() == 1);
    CHECK_THAT(many.refused[0], Catch::Contains("a list of 4996 rates would say it"));
    CHECK_THROWS_WITH(import("--lr-warmup-epochs 5 --lr-step-size 0"),
                      Catch::Contains("--lr-step-size 0: must be more"));
    CHECK_THROWS_WITH(import("--epochs 9000000000000000000 --lr-warmup-epochs 5"),
                      Catch::Contains("train.epochs must be"));
}

TEST_CASE("listed milestones, and a floor under a decay, are written as their rates") {
    CHECK_THAT(import_line("ddp",
                           "torchrun --nproc_per_node=1 train.py --model resnet18 --lr 0.1 --lr-scheduler multisteplr "
                           "--lr-steps 16 22 --epochs 26")
                   .toml,
               Catch::Contains("boundaries = [16.0, 22.0]") && Catch::Contains("values = [0.1, 0.01, 0.001]"));
    CHECK_THAT(import_line("tf_cnn_benchmarks",
                           "--model=lenet --init_learning_rate=0.1 --num_epochs_per_decay=2 "
                           "--learning_rate_decay_factor=0.5 --minimum_learning_rate=0.03")
                   .toml,
               Catch::Contains("boundaries = [2.0, 4.0]") && Catch::Contains("values = [0.1, 0.05, 0.03]"));
}

TEST_CASE("Horovod's warm-up begins at one worker's rate, and one worker has none") {
    const char* const flags = " python pytorch_imagenet_resnet50.py --train-dir T --val-dir V --base-lr 0.1";
    const ImportedConfig four = import_line("horovod", std::string("horovodrun -np 4").append(flags));
    CHECK_THAT(four.toml, Catch::Contains("warmup_epochs = 5.0") && Catch::Contains("boundaries = [30.0, 60.0, 80.0]"));
    CHECK(std::count(four.changed.begin(), four.changed.end(),
                     "warm-up of 5 epochs: from 1/4 of the rate there, from 0 here") == 1);
    const ImportedConfig one = import_line("horovod", std::string("horovodrun -np 1").append(flags));
    CHECK_THAT(one.toml, !Catch::Contains("warmup_epochs") && Catch::Contains("boundaries = [30.0, 60.0, 80.0]"));
}

}  // namespace
}  // namespace lockstep

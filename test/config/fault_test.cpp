// What a config can have wrong: each fault is a line with its place, the key, what was found and what is possible, and
// all of them come at once.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "config/config_maker.hpp"

namespace lockstep::test {
namespace {

/// In line 3 and following, after the least config.
struct Case {
    std::string text;
    std::string line;
};

void check(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
        INFO(c.text);
        CHECK(faults({{kLeast + c.text}}) == std::vector<std::string>{c.line});
    }
}

TEST_CASE("an unknown key or section is named with its place and the nearest one") {
    check({
        {"[optimizer]\n    lrr = 1", "1.toml:4:5: optimizer.lrr: unknown key; did you mean optimizer.lr?"},
        {"sede = 1", "1.toml:3:1: sede: unknown key; did you mean seed?"},
        {"lr = 1", "1.toml:3:1: lr: unknown key; did you mean optimizer.lr?"},
        {"batch_size = 1", "1.toml:3:1: batch_size: unknown key; did you mean batch.size?"},
        {"[batch]\nzzzzzzz = 1", "1.toml:4:1: batch.zzzzzzz: unknown key"},
        {"[optimiser]\nlr = 1", "1.toml:3:2: optimiser: unknown section; did you mean optimizer?"},
        {"[model.layerz]\nx = 1", "1.toml:3:8: model.layerz: unknown key; did you mean model.layers?"},
        {"data.train = { images = \"i\", label = \"l\" }",
         "1.toml:3:30: data.train.label: unknown key; did you mean data.train.labels?"},
    });
}

TEST_CASE("a value of another type is refused with what it should be") {
    check({
        {"[batch]\nsize = \"big\"", "1.toml:4:1: batch.size must be a whole number, got \"big\""},
        {"[batch]\nsize = 2.0", "1.toml:4:1: batch.size must be a whole number, got 2.0"},
        {"[optimizer]\nlr = true", "1.toml:4:1: optimizer.lr must be a number, got true"},
        {"[optimizer]\nlr = nan", "1.toml:4:1: optimizer.lr must be finite, got nan"},
        {"[optimizer]\nlr = inf", "1.toml:4:1: optimizer.lr must be finite, got inf"},
        {"[log]\ngrad_norm = 1", "1.toml:4:1: log.grad_norm must be true or false, got 1"},
        {"[log]\ndir = 1", "1.toml:4:1: log.dir must be a string, got 1"},
        {"[model]\nhidden = 5", "1.toml:4:1: model.hidden must be a list of whole numbers, got 5"},
        {"[model]\nhidden = [5, \"a\"]", "1.toml:4:1: model.hidden[1] must be a whole number, got \"a\""},
        {"data.mean = [[1]]", "1.toml:3:6: data.mean[0] must be a number, got [1]"},
        {"data.train = 1",
         "1.toml:3:6: data.train must be { images = \"…\", labels = \"…\" }, a path or a list of paths, got 1"},
        {"data.train.images = 1", "1.toml:3:6: data.train.images must be a path, got 1"},
        {"seed = 2024-01-01", "1.toml:3:1: seed must be a whole number, got a date or time"},
        {"batch = 128", "1.toml:3:1: batch is a section ([batch]), got 128"},
        {"[[batch]]\nsize = 1", "1.toml:3:3: batch is a section ([batch]), got [a table]"},
    });
}

TEST_CASE("a value out of range is refused with the bound that it breaks") {
    check({
        {"[batch]\nsize = 0", "1.toml:4:1: batch.size must be at least 1, got 0"},
        {"[batch]\nshards = 65537", "1.toml:4:1: batch.shards must be at most 65536, got 65537"},
        {"seed = -1", "1.toml:3:1: seed must be at least 0, got -1"},
        {"[optimizer]\nmomentum = 1", "1.toml:4:1: optimizer.momentum must be below 1, got 1"},
        {"[optimizer]\nlr = -0.1", "1.toml:4:1: optimizer.lr must be at least 0, got -0.1"},
        {"data.std = [1.0, 0.0]", "1.toml:3:6: data.std[1] must be above 0, got 0.0"},
        {"data.shape = [28, 28]", "1.toml:3:6: data.shape must hold 3 numbers, got 2"},
        {"data.mean = []", "1.toml:3:6: data.mean must hold at least 1 number, got 0"},
        {"data.shape = [2, 2, 3]\ndata.mean = [1, 2]",
         "1.toml:4:6: data.mean must have one value or one per channel (data.shape has 3), got 2"},
        {"data.mean = [1, 2]\ndata.std = [1, 2, 3]",
         "1.toml:4:6: data.std must have as many values as data.mean, got 3 and 2"},
        {"[device]\ntimeout_s = 0", "1.toml:4:1: device.timeout_s must be above 0, got 0"},
    });
}

TEST_CASE("a number that fp32 cannot hold is refused where fp32 is what it becomes") {
    check({
        {"[optimizer]\nlr = 1e39", "1.toml:4:1: optimizer.lr must be finite in fp32 (at most 3.4028235e+38), got 1e39"},
        {"data.mean = [0.5, -1e40]\ndata.std = [1, 1]",
         "1.toml:3:6: data.mean[1] must be finite in fp32 (at most 3.4028235e+38), got -1e40"},
        {"data.std = [1e-50]", "1.toml:3:6: data.std[0] must be above 0, got 1e-50, which is 0 in fp32"},
        {"[model]\ndropout = 0.999999999999",
         "1.toml:4:1: model.dropout must be at least 0 and below 1, got 0.999999999999, which is 1 in fp32"},
        {"[batch_norm]\nepsilon = 1e-60",
         "1.toml:4:1: batch_norm.epsilon must be above 0, got 1e-60, which is 0 in fp32"},
    });
    CHECK(faults({{kLeast + "[optimizer]\nlr = 3.4e38\nepsilon = 1e-60"}}).empty());  // 0 is legal there
    CHECK(faults({{kLeast + "[schedule]\nfactor = 1e39"}}).empty());                  // used in fp64
}

TEST_CASE("an unknown choice lists the choices") {
    check({
        {"[batch]\nlast = \"kepe\"",
         "1.toml:4:1: batch.last: unknown value \"kepe\"; one of keep, drop; did you mean keep?"},
        {"[batch]\nlayout = \"\"", "1.toml:4:1: batch.layout: unknown value \"\"; one of batch, epoch"},
        {"train.stop_metric = \"acc\"",
         "1.toml:3:7: train.stop_metric: unknown value \"acc\"; one of \"\", loss, accuracy, top5, auc, precision, "
         "recall, mse; did you mean accuracy?"},
        {"train.stop_metric = \"acu\"",
         "1.toml:3:7: train.stop_metric: unknown value \"acu\"; one of \"\", loss, accuracy, top5, auc, precision, "
         "recall, mse; did you mean auc?"},
    });
}

TEST_CASE("vendor arithmetic needs a GPU, and a precision below fp32 vendor arithmetic") {
    check({
        {"[device]\nbackend = \"cpu\"\narithmetic = \"vendor\"",
         "1.toml:5:1: device.arithmetic = \"vendor\" needs a GPU, and device.backend is \"cpu\""},
        {"[device]\nbackend = \"cuda\"\nprecision = \"tf32\"",
         "1.toml:5:1: device.precision = \"tf32\" needs device.arithmetic = \"vendor\"; \"defined\" computes in fp32"},
    });
    CHECK(faults({{kLeast + "device = { arithmetic = \"vendor\", precision = \"fp16\" }"}}).empty());
    CHECK(
        faults({{kLeast + "device = { backend = \"cuda\", arithmetic = \"vendor\", precision = \"bf16\" }"}}).empty());
}

TEST_CASE("neither or both of epochs and steps is refused") {
    using Lines = std::vector<std::string>;
    const std::string synthetic = "data.format = \"synthetic\"\n";
    CHECK(faults({{synthetic}}) == Lines{"train.epochs, train.steps: neither is set; set exactly one"});
    CHECK(faults({{kLeast + "train.steps = 1"}}) ==
          Lines{"1.toml:3:7: train.epochs and train.steps are both set; set exactly one"});
    CHECK(faults({{kLeast}, {}, {"train.steps=1", "train.epochs=1"}}) ==
          Lines{"--set train.steps=1: train.epochs and train.steps are both set; set exactly one"});
    CHECK(faults({{kLeast + "eval = { every_steps = 1, every_epochs = 1 }"}}) ==
          Lines{"1.toml:3:10: eval.every_epochs and eval.every_steps are both set; set exactly one"});
    CHECK(faults({{synthetic + "train.epochs = 0"}}) == Lines{"1.toml:2:7: train.epochs must be at least 1, got 0"});
    CHECK(faults({{synthetic + "train.epochs = 0\ntrain.steps = 60"}}) ==
          Lines{"1.toml:2:7: train.epochs must be at least 1, got 0; leave it out where train.steps is set"});
}

TEST_CASE("idx needs images and labels") {
    using Lines = std::vector<std::string>;
    CHECK(faults({{"train.epochs = 1"}}) ==
          Lines{"data.train: not set; idx needs { images = \"…\", labels = \"…\" } (or data.format = \"synthetic\")"});
    CHECK(faults({{"train.epochs = 1\ndata.train.images = \"/i\""}}) ==
          Lines{"1.toml:2:6: data.train: labels is missing; idx needs images and labels"});
    CHECK(faults({{"train.epochs = 1\ndata.train = \"/i\""}}) ==
          Lines{"1.toml:2:6: data.train: idx needs { images = \"…\", labels = \"…\" }, got [\"/i\"]"});
}

TEST_CASE("npz takes one file or a pair of images and labels, csv no pair") {
    using Lines = std::vector<std::string>;
    const std::string pair = "train.epochs = 1\ndata.train = { images = \"/x\", labels = \"/y\" }\ndata.format = ";
    CHECK(faults({{pair + "\"npz\""}}).empty());
    CHECK(faults({{pair + "\"csv\""}}) == Lines{"1.toml:2:6: data.train: csv needs a path or a list of paths, got { "
                                                "images = \"/x\", labels = \"/y\" }"});
    CHECK(faults({{"train.epochs = 1\ndata.train.images = \"/x\"\ndata.format = \"npz\""}}) ==
          Lines{"1.toml:2:6: data.train: npz needs one \"….npz\", or { images = \"x.npy\", labels = \"y.npy\" }, got { "
                "images = \"/x\" }"});
}

TEST_CASE("variables and --set take the place of file and position") {
    using Lines = std::vector<std::string>;
    CHECK(faults({{kLeast},
                  {{"LOCKSTEP_BATCH_SIZE", "0"}},
                  {"batch.shards=x", "foo.bar=1", "=3", "seed", "data.shape=[1]", "seed=1\nbatch.size=2"}}) ==
          Lines{"LOCKSTEP_BATCH_SIZE: batch.size must be at least 1, got 0",
                "--set batch.shards=x: batch.shards must be a whole number, got \"x\"",
                "--set foo.bar=1: foo.bar: unknown key", "--set =3: must be KEY=VALUE, for example batch.size=64",
                "--set seed: must be KEY=VALUE, for example batch.size=64",
                "--set data.shape=[1]: data.shape must hold 3 numbers, got 1",
                "--set seed=1\\nbatch.size=2: seed must be a whole number, got \"1\\nbatch.size=2\""});
}

TEST_CASE("all faults of all layers come at once, in order") {
    CHECK(faults({{"[batch]\nsize = 0\nlayout = 3\n", "sed = 1\n[optimizer]\nlr = \"x\"\n"}, {}, {"seed=-1"}}) ==
          std::vector<std::string>{
              "1.toml:2:1: batch.size must be at least 1, got 0", "1.toml:3:1: batch.layout must be a string, got 3",
              "2.toml:1:1: sed: unknown key; did you mean seed?",
              "2.toml:3:1: optimizer.lr must be a number, got \"x\"", "--set seed=-1: seed must be at least 0, got -1",
              "train.epochs, train.steps: neither is set; set exactly one",
              "data.train: not set; idx needs { images = \"…\", labels = \"…\" } (or data.format = \"synthetic\")"});
}

TEST_CASE(
    "a file that is not TOML is refused with line and column, and nothing is guessed about what it would have set") {
    const std::vector<std::string> lines = faults({{"[batch]\nsize = = 3\n", "sed = 1"}});
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].starts_with("1.toml:2:8: not TOML: "));
    CHECK(lines[1] == "2.toml:1:1: sed: unknown key; did you mean seed?");
    CHECK(faults({{"seed = 1\nseed = 2\n"}}).at(0).starts_with("1.toml:2:"));  // a key twice is no TOML
    CHECK(faults({{"log.dir = \"\xff\"\n"}}).at(0).starts_with("1.toml:1:"));
}

TEST_CASE("a file that cannot be read is named with the reason, and the kind is usage") {
    const TempFolder folder;
    const auto missing = caught([&] { load_config({{folder / "none.toml"}, {}, {}, "/"}); });
    REQUIRE(missing);
    CHECK(missing->kind == ErrorKind::kUsage);
    CHECK(missing->message == folder / "none.toml" + ": cannot be read: No such file or directory");
    const auto directory = caught([&] { load_config({{folder.path()}, {}, {}, "/"}); });
    REQUIRE(directory);
    CHECK(directory->message == folder.path() + ": cannot be read: Is a directory");
    const auto unset = caught([&] { load_config({{""}, {}, {}, "/"}); });
    REQUIRE(unset);
    CHECK(unset->kind == ErrorKind::kUsage);
    CHECK(unset->message == "-c \"\": cannot be read: No such file or directory");
}

TEST_CASE("a path that no TOML file could hold is refused") {
    CHECK(faults({{kLeast}, {}, {"log.dir=a\xff"}}).size() == 1);
    const auto error = caught([&] {
        load_config({{}, {}, {"data.format=synthetic", "train.epochs=1", "log.dir=x"}, "/a\xff"});
    });
    REQUIRE(error);
    CHECK(error->says("is not UTF-8"));
}

}  // namespace
}  // namespace lockstep::test

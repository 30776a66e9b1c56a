// The layers of a config, which of them wins, where its paths start, and what is a warning only.
#include <catch2/catch.hpp>

#include <filesystem>

#include "config/config_maker.hpp"

namespace lockstep::test {
namespace {

TEST_CASE("later layers win: defaults, files in order, variables, --set") {
    const Sources all{{kLeast + "[batch]\nsize = 2\nshards = 3\nlast = \"drop\"\n", "[batch]\nsize = 4\nshards = 5\n"},
                      {{"LOCKSTEP_BATCH_SIZE", "6"}},
                      {"batch.shards=7"}};
    const TempFolder folder;
    const LoadedConfig loaded = load(folder, all);
    CHECK(loaded.config.batch.size == 6);
    CHECK(loaded.config.batch.shards == 7);
    CHECK(loaded.config.batch.last == "drop");
    CHECK(loaded.config.batch.layout == "batch");

    CHECK(loaded.origins.at("batch.size") == "LOCKSTEP_BATCH_SIZE");
    CHECK(loaded.origins.at("batch.shards") == "--set batch.shards=7");
    CHECK(loaded.origins.at("batch.last") == folder / "1.toml" + ":6:1");
    CHECK(loaded.origins.at("batch.layout") == "default");
    CHECK(loaded.origins.size() == config_keys().size());
    CHECK(loaded.name == "2");
}

TEST_CASE("a variable or --set is read as a TOML value, else as a string") {
    const LoadedConfig loaded =
        load({{kLeast},
              {{"LOCKSTEP_SEED", "0x10"}, {"LOCKSTEP_BATCH_NORM_SCOPE", "global"}, {"LOCKSTEP_LOG_GRAD_NORM", "true"}},
              {"model.hidden=[3, 5]", "optimizer.name=\"adam\"", "optimizer.lr=1", "data.shuffle=none", "log.dir=2024",
               " batch.size = 9"}});
    CHECK(loaded.config.seed == 16);
    CHECK(loaded.config.batch_norm.scope == "global");
    CHECK(loaded.config.log.grad_norm);
    CHECK(loaded.config.model.hidden == std::vector<int64_t>{3, 5});
    CHECK(loaded.config.optimizer.name == "adam");
    CHECK(loaded.config.optimizer.lr == 1.0);
    CHECK(loaded.config.data.shuffle == "none");
    CHECK(loaded.config.log.dir == "/some dir/2024");  // a string where the key takes one
    CHECK(loaded.config.batch.size == 9);
}

TEST_CASE("of a pair of which one may be set a later layer drops the other") {
    struct Case {
        Sources sources;
        std::optional<int64_t> epochs, steps;
    };
    const std::string synthetic = "data.format = \"synthetic\"\n";
    const std::vector<Case> cases{
        {{{synthetic + "train.epochs = 2"}}, 2, {}},
        {{{synthetic + "train.epochs = 2", "train.steps = 3"}}, {}, 3},
        {{{synthetic + "train.steps = 3"}, {{"LOCKSTEP_TRAIN_EPOCHS", "4"}}}, 4, {}},
        {{{synthetic + "train.steps = 3"}, {{"LOCKSTEP_TRAIN_EPOCHS", "4"}}, {"train.steps=5"}}, {}, 5},
        {{{synthetic + "train.steps = 3", "train.epochs = 1", "train.steps = 7"}}, {}, 7},
    };
    for (const Case& c : cases) {
        const LoadedConfig loaded = load(c.sources);
        CHECK(loaded.config.train.epochs == c.epochs);
        CHECK(loaded.config.train.steps == c.steps);
    }
}

TEST_CASE("evaluation by steps drops the default of an evaluation every epoch, zero drops nothing") {
    const LoadedConfig by_steps = load({{kLeast + "eval.every_steps = 7"}});
    CHECK(by_steps.config.eval.every_steps == 7);
    CHECK(by_steps.config.eval.every_epochs == 0);
    const LoadedConfig zero = load({{kLeast + "eval.every_steps = 0"}});
    CHECK(zero.config.eval.every_epochs == 1);
    const LoadedConfig never = load({{kLeast + "eval.every_epochs = 0"}});
    CHECK(never.config.eval.every_epochs == 0);
    CHECK(never.config.eval.every_steps == 0);
    const LoadedConfig checkpoints =
        load({{kLeast + "checkpoint.every_steps = 5\ncheckpoint.every_epochs = 0"}, {}, {"checkpoint.every_epochs=2"}});
    CHECK(checkpoints.config.checkpoint.every_steps == 0);
    CHECK(checkpoints.config.checkpoint.every_epochs == 2);
}

TEST_CASE("relative paths start at the file that sets them, those of variables and --set at the current directory") {
    const TempFolder folder;
    const LoadedConfig loaded = load(
        folder, {{"train.epochs = 1\n[data]\ntrain = { images = \"i\", labels = \"./l\" }\ntest.images = \"../i\"\n"
                  "test.labels = \"/abs/l\"\n[log]\ndir = \"logs\"\n"},
                 {{"LOCKSTEP_DATA_TRAIN_LABELS", "here/l"}},
                 {"data.test.images=there"}});
    CHECK(loaded.config.data.train.images == folder / "i");
    CHECK(loaded.config.data.train.labels == "/some dir/here/l");
    CHECK(loaded.config.data.test.images == "/some dir/there");
    CHECK(loaded.config.data.test.labels == "/abs/l");
    CHECK(loaded.config.log.dir == folder / "logs");
}

TEST_CASE(
    "a folder and the way back out of it are left out of a path, unless a symbolic link stands before or it is not "
    "there") {
    const TempFolder folder;
    std::filesystem::create_directories(folder / "real/inner");
    std::filesystem::create_directory_symlink(folder / "real/inner", folder / "link");
    const auto path = [&](const std::string& written) {
        return load(folder, {{kLeast + "log.dir = \"" + written + "\""}}).config.log.dir;
    };
    CHECK(path("real/../x") == folder / "x");
    CHECK(path("real/inner/.././../x/") == folder / "x");
    CHECK(path("../x") == std::filesystem::path(folder.path()).parent_path().string() + "/x");
    CHECK(path("link/../x") == folder / "link/../x");  // that is real/x
    CHECK(path("link/../../x") == folder / "link/../../x");
    CHECK(path("none/../x") == folder / "none/../x");
    CHECK(path("/../../x") == "/x");
    CHECK(path("./real//x") == folder / "real/x");
}

TEST_CASE("a list of paths takes the place of images and labels, and the other way round") {
    const Sources lists{{kLeast + "data.train = [\"a\", \"/b\"]\ndata.test = \"c\""}};
    const TempFolder folder;
    const LoadedConfig loaded = load(folder, lists);
    CHECK(loaded.config.data.train.paths == std::vector<std::string>{folder / "a", "/b"});
    CHECK(loaded.config.data.test.paths == std::vector<std::string>{folder / "c"});
    const LoadedConfig table =
        load({lists.files, {}, {"data.train={ images = \"/i\", labels = \"/l\" }", "data.test=[]"}});
    CHECK(table.config.data.train == DataPaths{"/i", "/l", {}});
    CHECK(table.config.data.test.empty());
}

TEST_CASE("an unknown LOCKSTEP_ variable is a warning with the nearest one, and LOCKSTEP_DEBUG_ is nobody's") {
    const LoadedConfig loaded =
        load({{kLeast}, {{"LOCKSTEP_BATCH_SIZ", "1"}, {"LOCKSTEP_DEBUG_X", "1"}, {"LOCKSTEP_QQQQQQQQ", ""}}});
    CHECK(loaded.warnings ==
          std::vector<std::string>{"LOCKSTEP_BATCH_SIZ: no such config variable; did you mean LOCKSTEP_BATCH_SIZE?",
                                   "LOCKSTEP_QQQQQQQQ: no such config variable"});
}

TEST_CASE("a key that the chosen model or optimizer does not use is legal") {
    CHECK(
        faults(
            {{kLeast +
              "[optimizer]\nname = \"adam\"\nmomentum = 0.5\nrho = 0.8\n[schedule]\nboundaries = [1]\nvalues = [1, 2]\n"
              "power = 2\nrate = 0.5\nstaircase = true\n[batch_norm]\nscope = \"global\"\nunbiased = true\n"
              "[device]\nstreams = 3\n[model]\nchannels = [1, 2]\n"}})
            .empty());
}

TEST_CASE("a momentum that somebody sets beside sgd is a warning with its place, one that nobody sets is none") {
    const std::string sgd = kLeast + "[optimizer]\nname = \"sgd\"\n";
    const auto warnings = [](const Sources& sources) { return load(sources).warnings; };
    const std::string advice = "): sgd has none; write optimizer.name = \"momentum\" or \"nesterov\"";
    const TempFolder folder;
    CHECK(load(folder, {{sgd + "momentum = 0.9\n"}}).warnings ==
          std::vector<std::string>{"optimizer.momentum = 0.9 (" + (folder / "1.toml:5:1") + advice});
    CHECK(warnings({{sgd}, {{"LOCKSTEP_OPTIMIZER_MOMENTUM", "0.5"}}}) ==
          std::vector<std::string>{"optimizer.momentum = 0.5 (LOCKSTEP_OPTIMIZER_MOMENTUM" + advice});
    CHECK(warnings({{sgd}, {}, {"optimizer.momentum=0.5"}}) ==
          std::vector<std::string>{"optimizer.momentum = 0.5 (--set optimizer.momentum=0.5" + advice});
    CHECK(warnings({{sgd}}).empty());
    CHECK(warnings({{sgd + "momentum = 0\n"}}).empty());
    CHECK(warnings({{kLeast + "[optimizer]\nname = \"nesterov\"\nmomentum = 0.9\n"}}).empty());
}

TEST_CASE("a dotted key, a section and an inline table say the same") {
    for (const char* text : {"batch.size = 5", "[batch]\nsize = 5", "batch = { size = 5 }"}) {
        CHECK(load({{kLeast + text}}).config.batch.size == 5);
    }
    CHECK(load({{kLeast}, {}, {"batch={ size = 5 }"}}).config.batch.size == 5);
}

}  // namespace
}  // namespace lockstep::test

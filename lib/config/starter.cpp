// The starter file: an experiment on Fashion-MNIST that runs as it is, with every other key that does something beside
// it as a comment.
#include <fmt/format.h>

#include "config/key.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kFileHead =
    "# A Lockstep experiment: `lockstep train -c FILE` or `mpirun -np N lockstep train -c FILE`.\n"
    "# The result has the same bits on any number of ranks. Lines that are commented out show the defaults;\n"
    "# `lockstep config show -c FILE` prints every key in force, `lockstep config reference` explains each.\n"
    "# The data are Debian's package dataset-fashion-mnist (60,000 + 10,000 real images).\n\n";

/// What differs from the defaults, or is worth seeing as a setting: the keys a first experiment turns.
constexpr std::string_view kShown[] = {"seed",         "data.format",    "data.mean",    "data.std",
                                       "model.name",   "model.hidden",   "batch.size",   "batch.shards",
                                       "train.epochs", "optimizer.name", "optimizer.lr", "optimizer.momentum",
                                       "schedule.name"};

Config starter() {
    const auto fashion = [](const std::string& part) {
        const std::string start = "/usr/share/datasets/fashion-mnist/" + part;
        return DataPaths{start + "-images-idx3-ubyte.gz", start + "-labels-idx1-ubyte.gz", {}};
    };
    Config config;
    config.data.train = fashion("train");
    config.data.test = fashion("t10k");
    config.data.mean = {0.2860};  // of the 60,000 training images, pixels as 0 to 1
    config.data.std = {0.3530};
    config.train.epochs = 10;
    return config;
}

bool is_shown(const Key& key, const Config& config) {
    for (const std::string_view name : kShown) {
        if (name == key.name) return true;
    }
    return key.field.get(config) != default_of(key);
}

}  // namespace

std::string config_starter() {
    const Config config = starter();
    std::string out(kFileHead);
    for (const Section& section : config_sections()) {
        if (!section.name.empty()) out += fmt::format("\n[{}]\n", section.name);
        for (const Key& key : config_keys()) {
            if (section_of(key) != section.name) continue;
            const Value value = key.field.get(config);
            const std::string comment =
                fmt::format("# {}{}", key.doc, key.unit.empty() ? "" : fmt::format(" ({})", key.unit));
            // train.steps has no default to show beside the epochs.
            const std::string text = std::holds_alternative<std::monostate>(value) ? "4690" : toml_text(value);
            out +=
                fmt::format("{}\n{}{} = {}\n", comment, is_shown(key, config) ? "" : "# ", name_in_section(key), text);
        }
    }
    return out;
}

}  // namespace lockstep

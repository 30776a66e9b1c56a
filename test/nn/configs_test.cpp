// The experiments of configs/: each loads, and the networks of those on pictures fit their pictures.
#include <catch2/catch.hpp>
#include <filesystem>

#include "config/config.hpp"
#include "nn/zoo_fixture.hpp"

namespace lockstep::test {
namespace {

const std::string kConfigs = LOCKSTEP_SOURCE_DIR "/configs/";

Config load(const std::string& file) {
    ConfigSources sources;
    sources.files = {file};
    return load_config(sources).config;
}

TEST_CASE("every experiment of configs/ loads") {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
        INFO(entry.path());
        CHECK_NOTHROW(load(entry.path()));
        ++count;
    }
    CHECK(count > 5);
}

TEST_CASE("the networks of the experiments on pictures fit their pictures") {
    struct Case {
        const char* file;
        SampleShape input;
        int classes;
        int64_t parameters;
    };
    for (const Case& c :
         {Case{"fashion_resnet.toml", {28, 28, 1}, 10, 308'074}, Case{"cifar_resnet20.toml", {32, 32, 3}, 10, 272'474},
          Case{"cifar_alexnet.toml", {32, 32, 3}, 10, 1'756'426},
          Case{"imagenet_resnet50.toml", {224, 224, 3}, 1001, 25'559'081}}) {
        INFO(c.file);
        const Config config = load(kConfigs + c.file);
        ModelSpec spec = spec_of(config.model.name, config.model.flavor, c.input, c.classes);
        spec.layers = config.model.layers;
        CHECK(build_model(spec).parameters.trainable() == c.parameters);
    }
}

}  // namespace
}  // namespace lockstep::test

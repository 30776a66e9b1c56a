// Names, shapes and order of flavor torchvision against what torchvision stores (files/README.md), so that its weights
// load.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "nn/zoo_fixture.hpp"

namespace lockstep::test {
namespace {

std::string stored_tensors(const Model& model) {
    std::string lines;
    for (const Parameter& tensor : model.parameters.stored()) {
        lines += tensor.name;
        char before = ' ';
        for (const int64_t extent : tensor.shape) {
            lines += before + std::to_string(extent);
            before = 'x';
        }
        lines += '\n';
    }
    return lines;
}

TEST_CASE("flavor torchvision stores torchvision's tensors, buffers included, in its order") {
    for (const char* name : {"alexnet", "vgg11", "vgg16", "googlenet", "resnet18", "resnet34", "resnet50"}) {
        INFO(name);
        std::ifstream file(std::string(LOCKSTEP_TEST_FILES "/") + name + ".txt");
        REQUIRE(file.is_open());
        std::ostringstream expected;
        expected << file.rdbuf();
        CHECK(stored_tensors(build_model(spec_of(name, "torchvision", {224, 224, 3}, 1000))) == expected.str());
        CHECK(stored_tensors(build_model(spec_of(name, "torchvision", {224, 224, 3}, 999))) != expected.str());
    }
}

}  // namespace
}  // namespace lockstep::test

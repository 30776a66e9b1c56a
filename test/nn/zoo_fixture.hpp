// Models as tests of the zoo ask for them, and what they compare.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "core/error.hpp"
#include "nn/zoo.hpp"

namespace lockstep::test {

inline ModelSpec spec_of(const std::string& name, const std::string& flavor, SampleShape input, int classes) {
    ModelSpec spec;
    spec.name = name;
    spec.flavor = flavor;
    spec.input = input;
    spec.classes = classes;
    return spec;
}

inline const LayerSpec& layer_of(const Model& model, const std::string& name) {
    for (const LayerSpec& layer : model.layers) {
        if (layer.name == name) return layer;
    }
    FAIL("no layer " << name);
    return model.layers.front();
}

inline std::string layer_names(const Model& model) {
    std::string all;
    for (const LayerSpec& layer : model.layers) all += (all.empty() ? "" : " ") + layer.name;
    return all;
}

/// What build_model says; it must say it as a fault of usage.
inline std::string refusal(const ModelSpec& spec) {
    try {
        build_model(spec);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kUsage);
        return error.what();
    }
    return "";
}

}  // namespace lockstep::test

// The networks by name: layers, tensors, numbers of parameters, and what they refuse.
#include "nn/zoo.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "core/error.hpp"

namespace lockstep {
namespace {

ModelSpec fashion(const std::string& name) {
    ModelSpec spec;
    spec.name = name;
    spec.input = {28, 28, 1};
    return spec;
}

std::string names(const Model& model) {
    std::string all;
    for (const LayerSpec& layer : model.layers) all += (all.empty() ? "" : " ") + layer.name;
    return all;
}

std::string refusal(const ModelSpec& spec) {
    try {
        build_model(spec);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kUsage);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("mlp 784-512-256-10 has 535,818 parameters under PyTorch's names") {
    const Model model = build_model(fashion("mlp"));
    CHECK(names(model) == "fc1 relu1 fc2 relu2 fc3");
    CHECK(model.parameters.trainable() == 535'818);
    CHECK(model.prefix == 0);
    CHECK(model.parameters[0].name == "fc1.weight");
    CHECK(model.parameters[0].shape == std::vector<int64_t>{512, 784});
    CHECK(model.parameters[5].name == "fc3.bias");
    CHECK(model.parameters[5].shape == std::vector<int64_t>{10});
}

TEST_CASE("lenet on 28x28x1 has 1,663,370 parameters, and its convolutional part ends with the second pooling") {
    ModelSpec spec = fashion("lenet");
    spec.dropout = 0.5;
    const Model model = build_model(spec);
    CHECK(names(model) == "conv1 relu1 pool1 conv2 relu2 pool2 fc1 relu3 dropout1 fc2");
    CHECK(model.parameters.trainable() == 1'663'370);
    CHECK(model.prefix == 6);
    CHECK(model.parameters[2].name == "conv2.weight");
    CHECK(model.parameters[2].shape == std::vector<int64_t>{64, 32, 5, 5});
    CHECK(model.parameters[4].flattened == SampleShape{7, 7, 64});
}

TEST_CASE("lenet's poolings drop an odd row and column") {
    ModelSpec spec = fashion("lenet");
    spec.channels = {3, 5};
    spec.input = {12, 12, 1};
    CHECK(build_model(spec).layers[5].out == SampleShape{3, 3, 5});
    spec.input = {7, 7, 2};
    CHECK(build_model(spec).layers[2].out == SampleShape{3, 3, 3});
    CHECK(build_model(spec).layers[5].out == SampleShape{1, 1, 5});
}

TEST_CASE("weights start with variance 1 / (3 fan-in), biases at 0") {
    const Model model = build_model(fashion("lenet"));
    CHECK(model.parameters[0].initial.value == std::sqrt(1.0 / 75));
    CHECK(model.parameters[2].initial.value == std::sqrt(1.0 / (3 * 25 * 32)));
    CHECK(model.parameters[6].initial.value == std::sqrt(1.0 / (3 * 512)));
    CHECK(model.parameters[7].initial.kind == Initial::Kind::kConstant);
    CHECK(model.parameters[7].initial.value == 0);
}

TEST_CASE("dropout layers are numbered among themselves and absent at probability 0") {
    ModelSpec spec = fashion("mlp");
    spec.dropout = 0.25;
    spec.seed = 11;
    const Model model = build_model(spec);
    CHECK(names(model) == "fc1 relu1 dropout1 fc2 relu2 dropout2 fc3");
    CHECK(model.layers[2].dropout.layer == 0);
    CHECK(model.layers[5].dropout.layer == 1);
    CHECK(model.layers[5].dropout.seed == 11);
    CHECK(model.layers[5].dropout.probability == 0.25F);
}

TEST_CASE("relus are done by their neighbours, and the first layer is never asked for its data gradient") {
    const Model lenet = build_model(fashion("lenet"));
    CHECK(lenet.layers[0].relu_inside);
    CHECK(lenet.layers[1].forward_done);
    CHECK(lenet.layers[1].backward_done);
    CHECK(lenet.layers[2].masks_relu);
    CHECK_FALSE(lenet.layers[0].data_gradient);
    CHECK(lenet.layers[3].data_gradient);
    CHECK(lenet.layers[7].forward_done);
    CHECK_FALSE(lenet.layers[7].backward_done);
    CHECK_FALSE(lenet.layers[9].relu_inside);
    CHECK_FALSE(build_model(fashion("mlp")).layers[0].data_gradient);
}

TEST_CASE("a model that the samples do not allow is refused, naming layer and shapes") {
    ModelSpec spec = fashion("lenet");
    spec.input = {3, 2, 1};
    const std::string message = refusal(spec);
    CHECK(message.find("layer pool2") != std::string::npos);
    CHECK(message.find("3x2x1") != std::string::npos);
    CHECK(message.find("1x1x64") != std::string::npos);
}

TEST_CASE("values that make no network are refused by their key") {
    ModelSpec spec = fashion("resnet99");
    CHECK(refusal(spec).find("\"resnet99\" is not one of mlp, lenet") != std::string::npos);
    spec = fashion("lenet");
    spec.channels = {32};
    CHECK(refusal(spec).find("model.channels") != std::string::npos);
    spec = fashion("mlp");
    spec.hidden = {0};
    CHECK(refusal(spec).find("model.hidden") != std::string::npos);
    spec = fashion("mlp");
    spec.dropout = 1;
    CHECK(refusal(spec).find("model.dropout") != std::string::npos);
}

}  // namespace lockstep

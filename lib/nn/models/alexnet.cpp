// AlexNet (Krizhevsky 2014, "One weird trick": the form with one column that all trainers have) for large pictures, and
// the small one of cuda-convnet for pictures of CIFAR's size.
#include "nn/models/feature_pool.hpp"
#include "nn/models/models.hpp"

namespace lockstep {
namespace {

constexpr int kLeastLarge = 64;  // height and width: of smaller ones the large network would leave nothing

void build_large(Builder& builder) {
    const bool tf = builder.is_flavor("tf");
    // torchvision numbers relus and poolings, too.
    const auto conv = [&](int number, int channels, const Window& window) {
        const std::string n = std::to_string(number);
        builder.conv("features." + n, channels, window);
        builder.relu("features." + std::to_string(number + 1));
    };
    conv(0, 64, tf ? Window::valid(11, 4) : Window::padded(11, 4, 2));
    builder.max_pool("features.2", Window::valid(3, 2));
    conv(3, 192, Window::same(5));
    builder.max_pool("features.5", Window::valid(3, 2));
    conv(6, 384, Window::same(3));
    conv(8, tf ? 384 : 256, Window::same(3));
    conv(10, 256, Window::same(3));
    builder.max_pool("features.12", Window::valid(3, 2));
    if (builder.is_flavor("torchvision")) pool_features(builder, "avgpool", 6);
    if (tf) {
        builder.dense("classifier.1", 4096);
        builder.relu("classifier.2");
        builder.dropout();
        builder.dense("classifier.4", 4096);
        builder.relu("classifier.5");
        builder.dropout();
    } else {  // in PyTorch the dropout stands before its layer
        builder.dropout();
        builder.dense("classifier.1", 4096);
        builder.relu("classifier.2");
        builder.dropout();
        builder.dense("classifier.4", 4096);
        builder.relu("classifier.5");
    }
    builder.logits("classifier.6");
}

void build_small(Builder& builder) {
    const Weights first{.start = WeightStart::kGivenTruncated, .deviation = 0.05};
    const Weights second{.start = WeightStart::kGivenTruncated, .deviation = 0.05, .bias_value = 0.1};
    const Weights hidden{.start = WeightStart::kGivenTruncated, .deviation = 0.04, .bias_value = 0.1};
    const auto lrn = [&](const char* name) { builder.lrn(name, 4, 1.0F, static_cast<float>(0.001 / 9), 0.75F); };
    builder.conv("conv1", 64, Window::same(5), first);
    builder.relu("relu1");
    builder.max_pool("pool1", Window::same(3, 2));
    lrn("norm1");
    builder.conv("conv2", 64, Window::same(5), second);
    builder.relu("relu2");
    lrn("norm2");
    builder.max_pool("pool2", Window::same(3, 2));
    builder.dense("fc1", 384, hidden);
    builder.relu("relu3");
    builder.dense("fc2", 192, hidden);
    builder.relu("relu4");
    builder.logits("fc3");
}

}  // namespace

void build_alexnet(Builder& builder) {
    const SampleShape input = builder.shape();
    const bool large = input.height >= kLeastLarge && input.width >= kLeastLarge;
    if (large || builder.is_flavor("torchvision")) {
        build_large(builder);
    } else {
        build_small(builder);
    }
}

}  // namespace lockstep

// VGG (Simonyan and Zisserman 2014), configurations A (11 layers) and D (16), without batch norm.
#include <span>

#include "nn/models/feature_pool.hpp"
#include "nn/models/models.hpp"

namespace lockstep {
namespace {

void build_vgg(Builder& builder, std::span<const int> repeats) {
    constexpr int kChannels[] = {64, 128, 256, 512, 512};
    const bool tf = builder.is_flavor("tf");
    if (!tf) builder.set_rules({.conv = WeightStart::kHeOut});
    int number = 0;  // torchvision numbers relus and poolings, too
    const auto next = [&] { return "features." + std::to_string(number++); };
    for (std::size_t stage = 0; stage < repeats.size(); ++stage) {
        for (int i = 0; i < repeats[stage]; ++i) {
            builder.conv(next(), kChannels[stage], Window::same(3));
            builder.relu(next());
        }
        builder.max_pool(next(), Window::valid(2, 2));
    }
    if (builder.is_flavor("torchvision")) pool_features(builder, "avgpool", 7);
    const Weights hidden =
        tf ? Weights{.start = builder.rules().hidden} : Weights{.start = WeightStart::kGiven, .deviation = 0.01};
    builder.dense("classifier.0", 4096, hidden);
    builder.relu("classifier.1");
    builder.dropout();
    builder.dense("classifier.3", 4096, hidden);
    builder.relu("classifier.4");
    builder.dropout();
    if (tf) {
        builder.logits("classifier.6");
    } else {
        builder.dense("classifier.6", builder.outputs(), hidden);
    }
}

}  // namespace

void build_vgg11(Builder& builder) {
    constexpr int kRepeats[] = {1, 1, 2, 2, 2};
    build_vgg(builder, kRepeats);
}

void build_vgg16(Builder& builder) {
    constexpr int kRepeats[] = {2, 2, 3, 3, 3};
    build_vgg(builder, kRepeats);
}

}  // namespace lockstep

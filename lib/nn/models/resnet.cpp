// Residual networks (He et al. 2015) for large pictures, with torchvision's names.
#include <array>

#include "nn/models/models.hpp"
#include "nn/models/residual.hpp"

namespace lockstep {
namespace {

struct Depths {
    ResidualBlock::Kind kind;
    std::array<int, 4> blocks;
    bool stride_first = false;
};

void build_resnet(Builder& builder, const Depths& depths) {
    const bool tf = builder.is_flavor("tf");
    if (!tf) builder.set_rules({.conv = WeightStart::kHeOut});
    builder.conv_norm("conv1", "bn1", 64, Window::padded(7, 2, 3));
    builder.relu("relu");
    builder.max_pool("maxpool", tf ? Window::same(3, 2) : Window::padded(3, 2, 1));
    const bool bottleneck = depths.kind == ResidualBlock::Kind::kBottleneck;
    for (int stage = 0; stage < 4; ++stage) {
        for (int i = 0; i < depths.blocks[static_cast<std::size_t>(stage)]; ++i) {
            residual_block(builder, fmt::format("layer{}.{}", stage + 1, i),
                           {.kind = depths.kind,
                            .channels = (bottleneck ? 256 : 64) << stage,
                            .stride = stage > 0 && i == 0 ? 2 : 1,
                            .stride_first = depths.stride_first,
                            .same = tf});
        }
    }
    builder.global_pool("avgpool");
    builder.logits("fc");
}

constexpr std::array<int, 4> k50{3, 4, 6, 3};

/// n blocks each at 16, 32 and 64 channels. Flavor tf: shortcuts without weights, and no relu before the first block.
void build_small(Builder& builder, int blocks) {
    const bool tf = builder.is_flavor("tf");
    if (!tf) builder.set_rules({.conv = WeightStart::kHeOut});
    builder.conv_norm("conv1", "bn1", 16, Window::same(3));
    if (!tf) builder.relu("relu");
    for (int stage = 0; stage < 3; ++stage) {
        for (int i = 0; i < blocks; ++i) {
            residual_block(builder, fmt::format("layer{}.{}", stage + 1, i),
                           {.shortcut = tf ? ResidualBlock::Shortcut::kPadded : ResidualBlock::Shortcut::kProjection,
                            .channels = 16 << stage,
                            .stride = stage > 0 && i == 0 ? 2 : 1,
                            .same = tf});
        }
    }
    builder.global_pool("avgpool");
    builder.logits("fc");
}

}  // namespace

void build_resnet18(Builder& builder) {
    build_resnet(builder, {ResidualBlock::Kind::kBasic, {2, 2, 2, 2}});
}
void build_resnet34(Builder& builder) {
    build_resnet(builder, {ResidualBlock::Kind::kBasic, {3, 4, 6, 3}});
}
void build_resnet50(Builder& builder) {
    build_resnet(builder, {ResidualBlock::Kind::kBottleneck, k50, builder.is_flavor("tf")});
}
void build_resnet50_v1(Builder& builder) {
    build_resnet(builder, {ResidualBlock::Kind::kBottleneck, k50, true});
}
void build_resnet50_v1_5(Builder& builder) {
    build_resnet(builder, {ResidualBlock::Kind::kBottleneck, k50, false});
}

void build_resnet20(Builder& builder) {
    build_small(builder, 3);
}
void build_resnet32(Builder& builder) {
    build_small(builder, 5);
}
void build_resnet44(Builder& builder) {
    build_small(builder, 7);
}
void build_resnet56(Builder& builder) {
    build_small(builder, 9);
}

}  // namespace lockstep

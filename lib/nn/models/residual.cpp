#include "nn/models/residual.hpp"

namespace lockstep {
namespace {

int shortcut(Builder& builder, const std::string& name, const ResidualBlock& block) {
    const int have = builder.shape().channels;
    if (have == block.channels && block.stride == 1) return builder.at();
    if (block.shortcut == ResidualBlock::Shortcut::kProjection) {
        return builder.conv_norm(name + ".downsample.0", name + ".downsample.1", block.channels,
                                 Window::valid(1, block.stride));
    }
    if (have > block.channels) {
        builder.refuse(name, fmt::format("has a shortcut of {} channels beside {}: zeros can only be added", have,
                                         block.channels));
    }
    if (block.stride != 1) builder.average_pool(name + ".subsample", Window::valid(1, block.stride));
    const int missing = block.channels - have;
    return missing == 0 ? builder.at() : builder.pad_channels(name + ".pad", missing / 2, missing - missing / 2);
}

}  // namespace

int residual_block(Builder& builder, const std::string& name, const ResidualBlock& block) {
    const int input = builder.at();
    const auto three = [&](int stride) { return block.same ? Window::same(3, stride) : Window::padded(3, stride, 1); };
    const auto layer = [&](const std::string& n, int channels, const Window& window, bool relu) {
        builder.conv_norm(name + ".conv" + n, name + ".bn" + n, channels, window);
        if (relu) builder.relu(name + ".relu" + n);
    };
    if (block.kind == ResidualBlock::Kind::kBasic) {
        layer("1", block.channels, three(block.stride), true);
        layer("2", block.channels, three(1), false);
    } else {
        const int inner = block.channels / 4;
        layer("1", inner, Window::valid(1, block.stride_first ? block.stride : 1), true);
        // An explicit padding of 1, in TensorFlow, too.
        layer("2", inner, Window::padded(3, block.stride_first ? 1 : block.stride, 1), true);
        layer("3", block.channels, Window::valid(1), false);
    }
    const int main = builder.at();
    builder.continue_from(input);
    const int beside = shortcut(builder, name, block);
    builder.add(name + ".add", {main, beside});
    return builder.relu(name + ".relu");
}

}  // namespace lockstep

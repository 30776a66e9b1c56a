// GoogLeNet (Szegedy et al. 2014) without its side heads. In flavor tf as in the paper, with biases; else as
// torchvision has it, with batch norm and, as there, a 3x3 where the paper has the 5x5.
#include "nn/models/models.hpp"

namespace lockstep {
namespace {

/// Channels of the four branches: 1x1 | 1x1, 3x3 | 1x1, 5x5 | pooled 1x1.
struct Inception {
    const char* name;
    int one, before_three, three, before_five, five, pooled;
};

class GoogLeNet {
  public:
    explicit GoogLeNet(Builder& builder) : builder_(builder), tf_(builder.is_flavor("tf")) {
        // torchvision: normal of deviation 0.01, cut.
        if (!tf_) builder.set_rules({.conv = WeightStart::kGivenTruncated});
    }

    int conv(const std::string& name, int channels, const Window& window) {
        const Weights weights = tf_ ? Weights{.start = builder_.rules().conv}
                                    : Weights{.start = WeightStart::kGivenTruncated, .deviation = 0.01, .bias = false};
        builder_.conv(name + ".conv", channels, window, weights);
        if (!tf_) builder_.batch_norm(name + ".bn");
        return builder_.relu(name + ".relu");
    }

    void pool(const std::string& name, int kernel) {
        builder_.max_pool(name, tf_ ? Window::same(kernel, 2) : Window::ceiling(kernel, 2));
    }

    void inception(const Inception& block) {
        const std::string name = block.name;
        const int input = builder_.at();
        std::vector<int> branches;
        branches.push_back(conv(name + ".branch1", block.one, Window::same(1)));
        builder_.continue_from(input);
        conv(name + ".branch2.0", block.before_three, Window::same(1));
        branches.push_back(conv(name + ".branch2.1", block.three, Window::same(3)));
        builder_.continue_from(input);
        conv(name + ".branch3.0", block.before_five, Window::same(1));
        branches.push_back(conv(name + ".branch3.1", block.five, Window::same(tf_ ? 5 : 3)));
        builder_.continue_from(input);
        builder_.max_pool(name + ".branch4.0", Window::same(3));
        branches.push_back(conv(name + ".branch4.1", block.pooled, Window::same(1)));
        builder_.concat(name, branches);
    }

    bool is_tf() const { return tf_; }

  private:
    Builder& builder_;
    bool tf_;
};

}  // namespace

void build_googlenet(Builder& builder) {
    GoogLeNet net(builder);
    net.conv("conv1", 64, net.is_tf() ? Window::same(7, 2) : Window::padded(7, 2, 3));
    net.pool("maxpool1", 3);
    net.conv("conv2", 64, Window::same(1));
    net.conv("conv3", 192, Window::same(3));
    net.pool("maxpool2", 3);
    net.inception({"inception3a", 64, 96, 128, 16, 32, 32});
    net.inception({"inception3b", 128, 128, 192, 32, 96, 64});
    net.pool("maxpool3", 3);
    net.inception({"inception4a", 192, 96, 208, 16, 48, 64});
    net.inception({"inception4b", 160, 112, 224, 24, 64, 64});
    net.inception({"inception4c", 128, 128, 256, 24, 64, 64});
    net.inception({"inception4d", 112, 144, 288, 32, 64, 64});
    net.inception({"inception4e", 256, 160, 320, 32, 128, 128});
    net.pool("maxpool4", net.is_tf() ? 3 : 2);
    net.inception({"inception5a", 256, 160, 320, 32, 128, 128});
    net.inception({"inception5b", 384, 192, 384, 48, 128, 128});
    builder.global_pool("avgpool");
    builder.dropout();
    if (net.is_tf()) {
        builder.logits("fc");
    } else {
        builder.dense("fc", builder.outputs(), {.start = WeightStart::kGivenTruncated, .deviation = 0.01});
    }
}

}  // namespace lockstep

// LeNet as TensorFlow's benchmarks and tutorials have it: two 5x5 convolutions, each with relu and 2x2 max-pooling,
// then 512 hidden units.
#include "nn/models/models.hpp"

namespace lockstep {

void build_lenet(Builder& builder) {
    const ModelSpec& spec = builder.spec();
    if (spec.channels.size() != 2) {
        fail(ErrorKind::kUsage, "model.channels: lenet has 2 convolutions, but {} numbers of channels are given",
             spec.channels.size());
    }
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string n = std::to_string(i + 1);
        builder.conv("conv" + n, layer_size(spec.channels[i], "model.channels"), Window::same(5));
        builder.relu("relu" + n);
        builder.max_pool("pool" + n, Window::valid(2, 2));
    }
    builder.dense("fc1", 512);
    builder.relu("relu3");
    builder.dropout();
    builder.logits("fc2");
}

}  // namespace lockstep

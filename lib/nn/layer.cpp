#include "nn/layer.hpp"

#include "core/error.hpp"

namespace lockstep {

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, Backend& backend) {
    switch (spec.kind) {
        case LayerKind::kConv:
            return make_conv_layer(spec, backend);
        case LayerKind::kPool:
            return make_pool_layer(spec, backend);
        case LayerKind::kRelu:
            return make_relu_layer(spec, backend);
        case LayerKind::kDropout:
            return make_dropout_layer(spec, backend);
        case LayerKind::kDense:
            return make_dense_layer(spec, backend);
        case LayerKind::kAdd:
            return make_add_layer(spec, backend);
        case LayerKind::kConcat:
            return make_concat_layer(spec, backend);
        case LayerKind::kPadChannels:
            return make_pad_channels_layer(spec, backend);
        case LayerKind::kBatchNorm:
            return make_batch_norm_layer(spec, backend);
        case LayerKind::kLrn:
            return make_lrn_layer(spec, backend);
        case LayerKind::kSigmoid:
            return make_sigmoid_layer(spec, backend);
        case LayerKind::kExpand:
            return make_expand_layer(spec, backend);
    }
    fail(ErrorKind::kRuntime, "layer {}: of an unknown kind ({})", spec.name, static_cast<int>(spec.kind));
}

}  // namespace lockstep

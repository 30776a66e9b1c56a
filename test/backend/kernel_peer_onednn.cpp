// The peer of kernel_peer.hpp by oneDNN, planned once and run on one thread.
#include <omp.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "kernel_peer.hpp"

namespace lockstep::test {

using namespace dnnl;
using Tag = memory::format_tag;
using Type = memory::data_type;

struct KernelPeer::State {
    engine cpu{engine::kind::cpu, 0};
    stream queue{cpu};

    memory::desc matrix(int rows, int columns, memory::dims strides) {
        return {{rows, columns}, Type::f32, std::move(strides)};
    }

    std::function<void()> call(const primitive& p, std::unordered_map<int, memory> arguments) {
        return [this, p, arguments = std::move(arguments)] {
            p.execute(queue, arguments);
            queue.wait();
        };
    }

    /// [rows][k] x [k][columns]
    std::function<void()> product(const memory::desc& a, const memory::desc& b, const memory::desc& c, float* pa,
                                  float* pb, float* pc) {
        const matmul p(matmul::primitive_desc(matmul::desc(a, b, c), cpu));
        return call(p, {{DNNL_ARG_SRC, memory(a, cpu, pa)},
                        {DNNL_ARG_WEIGHTS, memory(b, cpu, pb)},
                        {DNNL_ARG_DST, memory(c, cpu, pc)}});
    }

    memory ones(int n) {
        memory made({{n}, Type::f32, Tag::a}, cpu);
        std::fill_n(static_cast<float*>(made.get_data_handle()), n, 1.0F);
        return made;
    }

    memory filled(const memory::desc& wanted, const memory::desc& given, float* p) {
        memory source(given, cpu, p), target(wanted, cpu);
        reorder(source, target).execute(queue, source, target);
        queue.wait();
        return target;
    }
};

KernelPeer::KernelPeer() : state_(std::make_unique<State>()) {
    omp_set_num_threads(1);
}
KernelPeer::~KernelPeer() = default;

KernelPeer::Calls KernelPeer::dense_forward(int rows, int in, int out, float* x, float* w, float* y) {
    return {state_->product(state_->matrix(rows, in, {in, 1}), state_->matrix(in, out, {1, in}),
                            state_->matrix(rows, out, {out, 1}), x, w, y)};
}

KernelPeer::Calls KernelPeer::dense_backward_data(int rows, int in, int out, float* dy, float* w, float* dx) {
    return {state_->product(state_->matrix(rows, out, {out, 1}), state_->matrix(out, in, {in, 1}),
                            state_->matrix(rows, in, {in, 1}), dy, w, dx)};
}

KernelPeer::Calls KernelPeer::dense_backward_weights(int rows, int in, int out, float* x, float* dy, float* dw) {
    return {[=] { dnnl_sgemm('T', 'N', out, in, rows, 1.0F, dy, out, x, in, 0.0F, dw, in); }};
}

namespace {

struct Descriptors {
    memory::desc x, w, y;
    memory::dims strides, dilates, pad_begin, pad_end;
};

Descriptors descriptors(const ConvShape& s, int rows, Tag activations, Tag weights) {
    return {{{rows, s.in.channels, s.in.height, s.in.width}, Type::f32, activations},
            {{s.out_channels, s.in.channels, s.kernel_h, s.kernel_w}, Type::f32, weights},
            {{rows, s.out_channels, s.out_h(), s.out_w()}, Type::f32, activations},
            {s.stride_h, s.stride_w},
            {s.dilation_h - 1, s.dilation_w - 1},
            {s.pad_top, s.pad_left},
            {s.pad_bottom, s.pad_right}};
}

convolution_forward::primitive_desc forward_descriptor(const Descriptors& d, const engine& cpu) {
    return {{prop_kind::forward_training, algorithm::convolution_direct, d.x, d.w, d.y, d.strides, d.dilates,
             d.pad_begin, d.pad_end},
            cpu};
}

}  // namespace

KernelPeer::Calls KernelPeer::conv_forward(const ConvShape& shape, int rows, float* x, float* w, float*) {
    Calls calls;
    const Descriptors plain = descriptors(shape, rows, Tag::nhwc, Tag::oihw);
    for (const Tag tag : {Tag::nhwc, Tag::any}) {
        const auto p = forward_descriptor(descriptors(shape, rows, tag, Tag::any), state_->cpu);
        calls.push_back(
            state_->call(convolution_forward(p), {{DNNL_ARG_SRC, state_->filled(p.src_desc(), plain.x, x)},
                                                  {DNNL_ARG_WEIGHTS, state_->filled(p.weights_desc(), plain.w, w)},
                                                  {DNNL_ARG_DST, memory(p.dst_desc(), state_->cpu)}}));
    }
    return calls;
}

KernelPeer::Calls KernelPeer::conv_backward_data(const ConvShape& shape, int rows, float* dy, float* w, float*) {
    Calls calls;
    const Descriptors plain = descriptors(shape, rows, Tag::nhwc, Tag::oihw);
    for (const Tag tag : {Tag::nhwc, Tag::any}) {
        const Descriptors d = descriptors(shape, rows, tag, Tag::any);
        const convolution_backward_data::primitive_desc p(
            {algorithm::convolution_direct, d.x, d.w, d.y, d.strides, d.dilates, d.pad_begin, d.pad_end}, state_->cpu,
            forward_descriptor(d, state_->cpu));
        calls.push_back(state_->call(convolution_backward_data(p),
                                     {{DNNL_ARG_DIFF_DST, state_->filled(p.diff_dst_desc(), plain.y, dy)},
                                      {DNNL_ARG_WEIGHTS, state_->filled(p.weights_desc(), plain.w, w)},
                                      {DNNL_ARG_DIFF_SRC, memory(p.diff_src_desc(), state_->cpu)}}));
    }
    return calls;
}

KernelPeer::Calls KernelPeer::conv_backward_weights(const ConvShape& shape, int rows, float* x, float* dy, float*) {
    Calls calls;
    const Descriptors plain = descriptors(shape, rows, Tag::nhwc, Tag::oihw);
    for (const Tag tag : {Tag::nhwc, Tag::any}) {
        const Descriptors d = descriptors(shape, rows, tag, Tag::any);
        const convolution_backward_weights::primitive_desc p(
            {algorithm::convolution_direct, d.x, d.w, d.y, d.strides, d.dilates, d.pad_begin, d.pad_end}, state_->cpu,
            forward_descriptor(d, state_->cpu));
        calls.push_back(state_->call(convolution_backward_weights(p),
                                     {{DNNL_ARG_SRC, state_->filled(p.src_desc(), plain.x, x)},
                                      {DNNL_ARG_DIFF_DST, state_->filled(p.diff_dst_desc(), plain.y, dy)},
                                      {DNNL_ARG_DIFF_WEIGHTS, memory(p.diff_weights_desc(), state_->cpu)}}));
    }
    return calls;
}

namespace {

const auto kNormFlags =
    normalization_flags::use_scale | normalization_flags::use_shift | normalization_flags::fuse_norm_relu;

}  // namespace

KernelPeer::Calls KernelPeer::norm_forward(int rows, int size, int channels, float* x) {
    Calls calls;
    const memory::desc plain({rows, channels, size, size}, Type::f32, Tag::nhwc);
    for (const Tag tag : {Tag::nhwc, Tag::nChw16c}) {
        const memory::desc d({rows, channels, size, size}, Type::f32, tag);
        const batch_normalization_forward::primitive_desc p({prop_kind::forward_training, d, 1e-3F, kNormFlags},
                                                            state_->cpu);
        const auto per_channel = [&] { return state_->ones(channels); };
        calls.push_back(state_->call(batch_normalization_forward(p),
                                     {{DNNL_ARG_SRC, state_->filled(d, plain, x)},
                                      {DNNL_ARG_DST, memory(d, state_->cpu)},
                                      {DNNL_ARG_MEAN, per_channel()},
                                      {DNNL_ARG_VARIANCE, per_channel()},
                                      {DNNL_ARG_SCALE, per_channel()},
                                      {DNNL_ARG_SHIFT, per_channel()},
                                      {DNNL_ARG_WORKSPACE, memory(p.workspace_desc(), state_->cpu)}}));
    }
    return calls;
}

KernelPeer::Calls KernelPeer::norm_backward(int rows, int size, int channels, float* x, float* dy) {
    Calls calls;
    const memory::desc plain({rows, channels, size, size}, Type::f32, Tag::nhwc);
    for (const Tag tag : {Tag::nhwc, Tag::nChw16c}) {
        const memory::desc d({rows, channels, size, size}, Type::f32, tag);
        const batch_normalization_forward::primitive_desc forward({prop_kind::forward_training, d, 1e-3F, kNormFlags},
                                                                  state_->cpu);
        const batch_normalization_backward::primitive_desc p({prop_kind::backward, d, d, 1e-3F, kNormFlags},
                                                             state_->cpu, forward);
        const auto per_channel = [&] { return state_->ones(channels); };
        std::unordered_map<int, memory> arrays = {{DNNL_ARG_SRC, state_->filled(d, plain, x)},
                                                  {DNNL_ARG_MEAN, per_channel()},
                                                  {DNNL_ARG_VARIANCE, per_channel()},
                                                  {DNNL_ARG_SCALE, per_channel()},
                                                  {DNNL_ARG_SHIFT, per_channel()},
                                                  {DNNL_ARG_WORKSPACE, memory(p.workspace_desc(), state_->cpu)}};
        std::unordered_map<int, memory> with_output = arrays;
        with_output.emplace(DNNL_ARG_DST, memory(d, state_->cpu));
        state_->call(batch_normalization_forward(forward), with_output)();
        arrays.emplace(DNNL_ARG_DIFF_DST, state_->filled(d, plain, dy));
        arrays.emplace(DNNL_ARG_DIFF_SRC, memory(d, state_->cpu));
        arrays.emplace(DNNL_ARG_DIFF_SCALE, per_channel());
        arrays.emplace(DNNL_ARG_DIFF_SHIFT, per_channel());
        calls.push_back(state_->call(batch_normalization_backward(p), arrays));
    }
    return calls;
}

}  // namespace lockstep::test

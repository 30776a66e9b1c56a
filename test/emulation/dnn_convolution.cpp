// The emulated convolutions: images as matrices of patches, and the emulated matrix product over them.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "test/emulation/dnn.hpp"

namespace lockstep::emulation {
namespace {

using Floats = std::vector<float>;

Floats load_all(Number number, const void* from, int64_t n) {
    Floats values(static_cast<std::size_t>(n));
    for (int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = load(number, from, i);
    return values;
}

/// Calls visit(output position, tap, offset of the input pixel) for every tap inside the image.
template <class Visit>
void for_each_tap(const DnnConvolution& g, Visit visit) {
    const cudnnConvolutionStruct& how = g.how;
    for (int p = 0; p < g.p; ++p) {
        for (int q = 0; q < g.q; ++q) {
            for (int r = 0; r < g.r; ++r) {
                const int h = p * how.stride_h - how.pad_h + r * how.dilation_h;
                if (h < 0 || h >= g.h) continue;
                for (int s = 0; s < g.s; ++s) {
                    const int w = q * how.stride_w - how.pad_w + s * how.dilation_w;
                    if (w < 0 || w >= g.w) continue;
                    visit(p * g.q + q, r * g.s + s, (int64_t{h} * g.w + w) * g.c);
                }
            }
        }
    }
}

/// One image and one group of channels at a time.
class Convolution {
  public:
    Convolution(const DnnConvolution& g, int64_t length)
        : g_(g),
          length_(length),
          c_(g.c / g.how.groups),
          k_(g.k / g.how.groups),
          positions_(int64_t{g.p} * g.q),
          terms_(int64_t{g.r} * g.s * c_) {}

    void forward(const Floats& x, const Floats& filter, Floats& y) const {
        for_each([&](int64_t n, int64_t group) {
            Product product(k_, positions_, terms_);
            fill_filter(filter, group, [&](int64_t k, int64_t term) -> float& { return product.a(term, k); });
            fill_patches(x, n, group,
                         [&](int64_t position, int64_t term) -> float& { return product.b(position, term); });
            product.run(length_);
            for (int64_t i = 0; i < positions_; ++i) {
                for (int64_t k = 0; k < k_; ++k) y[y_at(n, i, group) + static_cast<std::size_t>(k)] = product.c(i, k);
            }
        });
    }

    void backward_data(const Floats& filter, const Floats& dy, Floats& dx) const {
        for_each([&](int64_t n, int64_t group) {
            Product product(terms_, positions_, k_);
            fill_filter(filter, group, [&](int64_t k, int64_t term) -> float& { return product.a(k, term); });
            for (int64_t i = 0; i < positions_; ++i) {
                for (int64_t k = 0; k < k_; ++k) product.b(i, k) = dy[y_at(n, i, group) + static_cast<std::size_t>(k)];
            }
            product.run(length_);
            for_each_tap(g_, [&](int64_t position, int64_t tap, int64_t pixel) {
                float* const to = &dx[x_at(n, pixel, group)];
                for (int64_t c = 0; c < c_; ++c) to[c] += product.c(position, tap * c_ + c);
            });
        });
    }

    void backward_filter(const Floats& x, const Floats& dy, Floats& dw) const {
        for_each([&](int64_t n, int64_t group) {
            Product product(terms_, k_, positions_);
            fill_patches(x, n, group,
                         [&](int64_t position, int64_t term) -> float& { return product.a(position, term); });
            for (int64_t i = 0; i < positions_; ++i) {
                for (int64_t k = 0; k < k_; ++k) product.b(k, i) = dy[y_at(n, i, group) + static_cast<std::size_t>(k)];
            }
            product.run(length_);
            float* const to = &dw[static_cast<std::size_t>(group * k_ * terms_)];
            for (int64_t k = 0; k < k_; ++k) {
                for (int64_t term = 0; term < terms_; ++term) to[k * terms_ + term] += product.c(k, term);
            }
        });
    }

  private:
    template <class Visit>
    void for_each(Visit visit) const {
        for (int64_t n = g_.n; n-- > 0;) {
            for (int64_t group = 0; group < g_.how.groups; ++group) visit(n, group);
        }
    }
    std::size_t x_at(int64_t n, int64_t pixel, int64_t group) const {
        return static_cast<std::size_t>(n * g_.h * g_.w * g_.c + pixel + group * c_);
    }
    std::size_t y_at(int64_t n, int64_t position, int64_t group) const {
        return static_cast<std::size_t>((n * positions_ + position) * g_.k + group * k_);
    }
    template <class At>
    void fill_filter(const Floats& filter, int64_t group, At at) const {
        const float* from = &filter[static_cast<std::size_t>(group * k_ * terms_)];
        for (int64_t k = 0; k < k_; ++k) {
            for (int64_t term = 0; term < terms_; ++term) at(k, term) = *from++;
        }
    }
    template <class At>
    void fill_patches(const Floats& x, int64_t n, int64_t group, At at) const {
        for_each_tap(g_, [&](int64_t position, int64_t tap, int64_t pixel) {
            const float* const from = &x[x_at(n, pixel, group)];
            for (int64_t c = 0; c < c_; ++c) at(position, tap * c_ + c) = from[c];
        });
    }

    const DnnConvolution& g_;
    int64_t length_, c_, k_, positions_, terms_;
};

}  // namespace

void dnn_run(DnnPass pass, const DnnConvolution& g, int64_t length, const void* first, const void* second,
             void* result) {
    const Convolution convolution(g, length);
    Floats sums;
    switch (pass) {
        case DnnPass::kForward:
            sums.resize(static_cast<std::size_t>(g.y_elements()));
            convolution.forward(load_all(g.number, first, g.x_elements()),
                                load_all(g.number, second, g.filter_elements()), sums);
            break;
        case DnnPass::kBackwardData:
            sums.resize(static_cast<std::size_t>(g.x_elements()));
            convolution.backward_data(load_all(g.number, first, g.filter_elements()),
                                      load_all(g.number, second, g.y_elements()), sums);
            break;
        case DnnPass::kBackwardFilter:
            sums.resize(static_cast<std::size_t>(g.filter_elements()));
            convolution.backward_filter(load_all(g.number, first, g.x_elements()),
                                        load_all(g.number, second, g.y_elements()), sums);
            break;
    }
    for (std::size_t i = 0; i < sums.size(); ++i) store(g.number, sums[i], result, static_cast<int64_t>(i));
}

}  // namespace lockstep::emulation

using namespace lockstep::emulation;

namespace {

struct Memory {
    const void* pointer;
    int64_t elements;
};

/// The three convolution calls: what they read first, second, and what they write.
cudnnStatus_t convolve(const char* name, DnnPass pass, cudnnHandle_t handle, cudnnStatus_t resolved,
                       const DnnConvolution& g, int algorithm, const void* alpha, const void* beta, Memory first,
                       Memory second, Memory result, void* workspace, size_t workspace_bytes) {
    dnn_need_alive(handle, name);
    if (resolved != CUDNN_STATUS_SUCCESS) return resolved;
    if (handle->stream == nullptr) fail(fmt::format("{}: the handle has no stream", name));
    if (alpha == nullptr || beta == nullptr) {
        return dnn_refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, fmt::format("{}: no alpha or no beta", name));
    }
    if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) {
        fail(fmt::format("{}: alpha {} and beta {} are not emulated, only 1 and 0", name,
                         *static_cast<const float*>(alpha), *static_cast<const float*>(beta)));
    }
    size_t needed = 0;
    const cudnnStatus_t status = dnn_workspace(pass, g, algorithm, needed);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (workspace_bytes < needed || (needed > 0 && workspace == nullptr)) {
        return dnn_refuse(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          fmt::format("{}: a workspace of {} bytes, needed are {}", name, workspace_bytes, needed));
    }
    const cudaStream_t stream = handle->stream;
    const std::size_t size = lockstep::emulation::bytes_of(g.number);
    const auto bytes = [size](const Memory& memory) { return static_cast<std::size_t>(memory.elements) * size; };
    access(stream, first.pointer, bytes(first), false, name);
    access(stream, second.pointer, bytes(second), false, name);
    access(stream, result.pointer, bytes(result), true, name);
    if (needed > 0) access(stream, workspace, needed, true, std::string("workspace of ") + name);
    OrderOf order;
    order.add(algorithm).add(g.n).add(g.c).add(g.k).add(g.h).add(g.w).add(g.r);
    order.add_alignment(first.pointer).add_alignment(second.pointer).add_alignment(result.pointer);
    push(stream, name, [=, length = order.length()] {
        dnn_run(pass, g, length, translate(first.pointer, bytes(first)), translate(second.pointer, bytes(second)),
                translate(result.pointer, bytes(result)));
        if (needed > 0) fill_nan(translate(workspace, needed), needed);
    });
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const cudnnFilterDescriptor_t filter_desc, const void* filter,
                                      const cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
    return dnn_call("cudnnConvolutionForward", [&] {
        DnnConvolution g;
        const cudnnStatus_t resolved = dnn_resolve("cudnnConvolutionForward", x_desc, filter_desc, how, y_desc, g);
        return convolve("cudnnConvolutionForward", DnnPass::kForward, handle, resolved, g, algorithm, alpha, beta,
                        {x, g.x_elements()}, {filter, g.filter_elements()}, {y, g.y_elements()}, workspace,
                        workspace_bytes);
    });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t filter_desc, const void* filter,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t how,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_desc, void* dx) {
    return dnn_call("cudnnConvolutionBackwardData", [&] {
        DnnConvolution g;
        const cudnnStatus_t resolved =
            dnn_resolve("cudnnConvolutionBackwardData", dx_desc, filter_desc, how, dy_desc, g);
        return convolve("cudnnConvolutionBackwardData", DnnPass::kBackwardData, handle, resolved, g, algorithm, alpha,
                        beta, {filter, g.filter_elements()}, {dy, g.y_elements()}, {dx, g.x_elements()}, workspace,
                        workspace_bytes);
    });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t how,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             size_t workspace_bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
    return dnn_call("cudnnConvolutionBackwardFilter", [&] {
        DnnConvolution g;
        const cudnnStatus_t resolved = dnn_resolve("cudnnConvolutionBackwardFilter", x_desc, dw_desc, how, dy_desc, g);
        return convolve("cudnnConvolutionBackwardFilter", DnnPass::kBackwardFilter, handle, resolved, g, algorithm,
                        alpha, beta, {x, g.x_elements()}, {dy, g.y_elements()}, {dw, g.filter_elements()}, workspace,
                        workspace_bytes);
    });
}

}  // extern "C"

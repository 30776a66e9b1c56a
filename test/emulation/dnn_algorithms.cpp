// The algorithms that the emulated cuDNN offers, in a cruel order: first one that has failed, one whose bits vary or
// that rounds operands of its own accord, then one that needs more memory than anybody grants. Whoever takes the first
// of the list is wrong.
#include <fmt/format.h>

#include "test/emulation/dnn.hpp"

namespace lockstep::emulation {
namespace {

constexpr size_t kTooMuch = size_t{64} << 30;

// Never zero but for the implicit product, and other for each convolution.
size_t some_workspace(const DnnConvolution& c) {
    return 4096 + 256 * static_cast<size_t>((c.x_elements() + c.y_elements()) % 13);
}

bool is_reduced(const DnnConvolution& c) {
    return c.number == Number::kBf16 || c.number == Number::kFp16;
}

}  // namespace

DnnAlgorithms dnn_algorithms(DnnPass pass, const DnnConvolution& c) {
    const auto yes = CUDNN_DETERMINISTIC, no = CUDNN_NON_DETERMINISTIC;
    const auto good = CUDNN_STATUS_SUCCESS;
    const cudnnMathType_t tensor = CUDNN_TENSOR_OP_MATH;
    const cudnnMathType_t own = is_reduced(c) ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
    const size_t some = some_workspace(c);
    switch (pass) {
        case DnnPass::kForward:
            return {
                {{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, good, yes, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, some},
                 {CUDNN_CONVOLUTION_FWD_ALGO_FFT, good, yes, own, kTooMuch},
                 {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, good, yes, tensor, some},
                 {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, good, yes, own, 0}}};
        case DnnPass::kBackwardData:
            return {{{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, good, no, own, 0},
                     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_STATUS_NOT_SUPPORTED, yes, own, 0},
                     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, good, yes, tensor, some},
                     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, good, yes, own, some}}};
        case DnnPass::kBackwardFilter:
            return {{{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, good, no, own, some},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, good, no, own, 0},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, good, yes, tensor, some},
                     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, good, yes, own, some}}};
    }
    return {};
}

cudnnStatus_t dnn_workspace(DnnPass pass, const DnnConvolution& c, int algorithm, size_t& bytes) {
    bool listed = false;
    for (const DnnAlgorithm& known : dnn_algorithms(pass, c).list) {
        if (known.algorithm != algorithm) continue;
        if (known.determinism != CUDNN_DETERMINISTIC) {
            fail(fmt::format("cuDNN: algorithm {} is non-deterministic", algorithm));
        }
        listed = listed || known.status == CUDNN_STATUS_SUCCESS;
        bytes = known.workspace;
    }
    if (listed) return CUDNN_STATUS_SUCCESS;
    return dnn_refuse(CUDNN_STATUS_NOT_SUPPORTED,
                      fmt::format("cuDNN: algorithm {} does not do this convolution", algorithm));
}

}  // namespace lockstep::emulation

using namespace lockstep::emulation;

namespace {

template <class Perf>
cudnnStatus_t list_algorithms(const char* name, DnnPass pass, cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                              cudnnFilterDescriptor_t filter, cudnnConvolutionDescriptor_t how,
                              cudnnTensorDescriptor_t y, int asked, int* given, Perf* results) {
    return dnn_call(name, [&] {
        dnn_need_alive(handle, name);
        DnnConvolution convolution;
        const cudnnStatus_t status = dnn_resolve(name, x, filter, how, y, convolution);
        if (status != CUDNN_STATUS_SUCCESS) return status;
        const DnnAlgorithms all = dnn_algorithms(pass, convolution);
        *given = asked < kDnnAlgorithms ? asked : kDnnAlgorithms;
        for (int i = 0; i < *given; ++i) {
            const DnnAlgorithm& from = all.list[i];
            results[i] = {};
            results[i].algo = static_cast<decltype(results[i].algo)>(from.algorithm);
            results[i].status = from.status;
            results[i].time = -1;
            results[i].memory = from.workspace;
            results[i].determinism = from.determinism;
            results[i].mathType = from.math;
        }
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t workspace_size(const char* name, DnnPass pass, cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                             cudnnFilterDescriptor_t filter, cudnnConvolutionDescriptor_t how,
                             cudnnTensorDescriptor_t y, int algorithm, size_t* bytes) {
    return dnn_call(name, [&] {
        dnn_need_alive(handle, name);
        DnnConvolution convolution;
        const cudnnStatus_t status = dnn_resolve(name, x, filter, how, y, convolution);
        if (status != CUDNN_STATUS_SUCCESS) return status;
        return dnn_workspace(pass, convolution, algorithm, *bytes);
    });
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t filter,
                                                     const cudnnConvolutionDescriptor_t how,
                                                     const cudnnTensorDescriptor_t y, const int asked, int* given,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
    return list_algorithms("cudnnGetConvolutionForwardAlgorithm_v7", DnnPass::kForward, handle, x, filter, how, y,
                           asked, given, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t filter,
                                                          const cudnnTensorDescriptor_t y,
                                                          const cudnnConvolutionDescriptor_t how,
                                                          const cudnnTensorDescriptor_t x, const int asked, int* given,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
    return list_algorithms("cudnnGetConvolutionBackwardDataAlgorithm_v7", DnnPass::kBackwardData, handle, x, filter,
                           how, y, asked, given, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t how,
                                                            const cudnnFilterDescriptor_t filter, const int asked,
                                                            int* given, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
    return list_algorithms("cudnnGetConvolutionBackwardFilterAlgorithm_v7", DnnPass::kBackwardFilter, handle, x, filter,
                           how, y, asked, given, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t filter,
                                                      const cudnnConvolutionDescriptor_t how,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
    return workspace_size("cudnnGetConvolutionForwardWorkspaceSize", DnnPass::kForward, handle, x, filter, how, y,
                          algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t filter,
                                                           const cudnnTensorDescriptor_t y,
                                                           const cudnnConvolutionDescriptor_t how,
                                                           const cudnnTensorDescriptor_t x,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
    return workspace_size("cudnnGetConvolutionBackwardDataWorkspaceSize", DnnPass::kBackwardData, handle, x, filter,
                          how, y, algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t y,
                                                             const cudnnConvolutionDescriptor_t how,
                                                             const cudnnFilterDescriptor_t filter,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
    return workspace_size("cudnnGetConvolutionBackwardFilterWorkspaceSize", DnnPass::kBackwardFilter, handle, x, filter,
                          how, y, algorithm, bytes);
}

}  // extern "C"

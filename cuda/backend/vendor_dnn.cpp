// Empty where Lockstep is built without cuDNN.
#ifdef LOCKSTEP_HAVE_CUDNN
#include "cuda/backend/vendor_dnn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "cuda/access.h"

namespace lockstep {
namespace {

const char* name_of(cudnnConvolutionFwdAlgo_t algorithm) {
    static constexpr std::array names{"IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
                                      "WINOGRAD",      "WINOGRAD_NONFUSED"};
    return names.at(static_cast<std::size_t>(algorithm));
}
const char* name_of(cudnnConvolutionBwdDataAlgo_t algorithm) {
    static constexpr std::array names{"ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
    return names.at(static_cast<std::size_t>(algorithm));
}
const char* name_of(cudnnConvolutionBwdFilterAlgo_t algorithm) {
    static constexpr std::array names{"ALGO_0",    "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED",
                                      "FFT_TILING"};
    return names.at(static_cast<std::size_t>(algorithm));
}

cudnnDataType_t data_type(CudaPrecision precision) {
    switch (number_format(precision)) {
        case NumberFormat::kFp32:
            return CUDNN_DATA_FLOAT;
        case NumberFormat::kBf16:
            return CUDNN_DATA_BFLOAT16;
        case NumberFormat::kFp16:
            break;
    }
    return CUDNN_DATA_HALF;
}

/// The math type that an algorithm offered with `offered` runs in, if it may be taken. fp32 runs in FMA_MATH whatever
/// is offered (the default math would permit tf32); the others in tensor cores, or without where there is no such
/// kernel. An algorithm that rounds operands of its own accord is never taken.
bool permits(CudaPrecision precision, cudnnMathType_t offered, cudnnMathType_t& runs_in) {
    runs_in = precision == CudaPrecision::kFp32 ? CUDNN_FMA_MATH : offered;
    if (precision == CudaPrecision::kFp32) return offered == CUDNN_FMA_MATH || offered == CUDNN_DEFAULT_MATH;
    return offered != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
}

constexpr int kMostResults = 16;

/// What `get(given, results)` lists, best first by cuDNN's rules.
template <class Result, class Get>
std::vector<Result> listed(Get get) {
    std::vector<Result> results(kMostResults);
    int given = 0;
    CUDNN_CHECK(get(&given, results.data()));
    results.resize(static_cast<std::size_t>(given));
    return results;
}

}  // namespace

void cudnn_check(cudnnStatus_t status, const char* call, const std::source_location& where) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    vendor_failed(call, cudnnGetErrorString(status), status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                  where);
}

DnnHandle::DnnHandle(cudaStream_t stream) : stream_(stream) {
    CUDNN_CHECK(cudnnCreate(&handle_));
    CUDNN_CHECK(cudnnSetStream(handle_, stream));
}

DnnHandle::~DnnHandle() {
    cudnnDestroy(handle_);
}

DnnHandle& DnnHandle::of(VendorStream& stream) {
    if (!stream.dnn()) {
        stream.context().make_current();
        stream.dnn() = std::make_shared<DnnHandle>(stream.get());
    }
    return *stream.dnn();
}

std::string dnn_version() {
    const std::size_t version = cudnnGetVersion();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// Lists the pass's algorithms by `list(how)` and keeps the first that may be taken. The descriptor of
// each pass is its own, since it carries the math type.
template <class Algorithm, class List>
void DnnConvolution::choose(Choice<Algorithm>& choice, const char* pass, List list) {
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    CUDNN_CHECK(cudnnCreateConvolutionDescriptor(&choice.how));
    CUDNN_CHECK(cudnnSetConvolution2dDescriptor(choice.how, shape_.pad_top, shape_.pad_left, shape_.stride_h,
                                                shape_.stride_w, shape_.dilation_h, shape_.dilation_w,
                                                CUDNN_CROSS_CORRELATION, sums));
    CUDNN_CHECK(cudnnSetConvolutionGroupCount(choice.how, shape_.groups));
    CUDNN_CHECK(cudnnSetConvolutionMathType(
        choice.how, precision_ == CudaPrecision::kFp32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH));
    const auto found = list(choice.how);
    for (const auto& result : found) {
        cudnnMathType_t math{};
        if (result.status != CUDNN_STATUS_SUCCESS || result.determinism != CUDNN_DETERMINISTIC ||
            result.memory > kDnnWorkspaceLimit || !permits(precision_, result.mathType, math))
            continue;
        choice.algorithm = result.algo;
        CUDNN_CHECK(cudnnSetConvolutionMathType(choice.how, math));
        return;
    }
    fail(ErrorKind::kUsage,
         "cuDNN {} has no deterministic algorithm within {} MiB of workspace for {} of {} ({} offered); use "
         "device.arithmetic = \"defined\"",
         dnn_version(), kDnnWorkspaceLimit >> 20, pass, text(), found.size());
}

DnnConvolution::DnnConvolution(DnnHandle& handle, const ConvShape& shape, int rows, CudaPrecision precision,
                               bool backward_data)
    : shape_(shape), rows_(rows), precision_(precision), backward_data_(backward_data) {
    try {
        create_descriptors();
        choose(forward_, "the forward pass", [&](cudnnConvolutionDescriptor_t how) {
            return listed<cudnnConvolutionFwdAlgoPerf_t>([&](int* given, auto* results) {
                return cudnnGetConvolutionForwardAlgorithm_v7(handle.get(), x_, filters_, how, y_, kMostResults, given,
                                                              results);
            });
        });
        CUDNN_CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle.get(), x_, filters_, forward_.how, y_,
                                                            forward_.algorithm, &forward_.workspace));
        if (backward_data_) {
            choose(data_, "the data gradient", [&](cudnnConvolutionDescriptor_t how) {
                return listed<cudnnConvolutionBwdDataAlgoPerf_t>([&](int* given, auto* results) {
                    return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle.get(), filters_, y_, how, x_,
                                                                       kMostResults, given, results);
                });
            });
            CUDNN_CHECK(cudnnGetConvolutionBackwardDataWorkspaceSize(handle.get(), filters_, y_, data_.how, x_,
                                                                     data_.algorithm, &data_.workspace));
        }
        choose(weights_, "the weight gradient", [&](cudnnConvolutionDescriptor_t how) {
            return listed<cudnnConvolutionBwdFilterAlgoPerf_t>([&](int* given, auto* results) {
                return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle.get(), x_, y_, how, filters_, kMostResults,
                                                                     given, results);
            });
        });
        CUDNN_CHECK(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle.get(), x_, y_, weights_.how, filters_,
                                                                   weights_.algorithm, &weights_.workspace));
    } catch (...) {
        destroy_descriptors();
        throw;
    }
}

DnnConvolution::~DnnConvolution() {
    destroy_descriptors();
}

void DnnConvolution::create_descriptors() {
    const cudnnDataType_t type = data_type(precision_);
    const SampleShape out = shape_.out();
    CUDNN_CHECK(cudnnCreateTensorDescriptor(&x_));
    CUDNN_CHECK(cudnnCreateTensorDescriptor(&y_));
    CUDNN_CHECK(cudnnCreateFilterDescriptor(&filters_));
    CUDNN_CHECK(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NHWC, type, rows_, shape_.in.channels, shape_.in.height,
                                           shape_.in.width));
    CUDNN_CHECK(cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NHWC, type, rows_, out.channels, out.height, out.width));
    CUDNN_CHECK(cudnnSetFilter4dDescriptor(filters_, type, CUDNN_TENSOR_NHWC, shape_.out_channels,
                                           shape_.in.channels / shape_.groups, shape_.kernel_h, shape_.kernel_w));
}

void DnnConvolution::destroy_descriptors() {
    for (const auto how : {forward_.how, data_.how, weights_.how}) {
        if (how != nullptr) cudnnDestroyConvolutionDescriptor(how);
    }
    if (x_ != nullptr) cudnnDestroyTensorDescriptor(x_);
    if (y_ != nullptr) cudnnDestroyTensorDescriptor(y_);
    if (filters_ != nullptr) cudnnDestroyFilterDescriptor(filters_);
}

void DnnConvolution::forward(DnnHandle& handle, const void* x, const void* filters, void* y,
                             DnnWorkspace workspace) const {
    const float one = 1, zero = 0;
    CUDNN_CHECK(cudnnConvolutionForward(handle.get(), &one, x_, x, filters_, filters, forward_.how, forward_.algorithm,
                                        workspace.memory, workspace.bytes, &zero, y_, y));
    after_launch(handle.stream(), "cudnnConvolutionForward");
}

void DnnConvolution::backward_data(DnnHandle& handle, const void* dy, const void* filters, void* dx,
                                   DnnWorkspace workspace) const {
    const float one = 1, zero = 0;
    CUDNN_CHECK(cudnnConvolutionBackwardData(handle.get(), &one, filters_, filters, y_, dy, data_.how, data_.algorithm,
                                             workspace.memory, workspace.bytes, &zero, x_, dx));
    after_launch(handle.stream(), "cudnnConvolutionBackwardData");
}

void DnnConvolution::backward_filters(DnnHandle& handle, const void* x, const void* dy, void* dw,
                                      DnnWorkspace workspace) const {
    const float one = 1, zero = 0;
    CUDNN_CHECK(cudnnConvolutionBackwardFilter(handle.get(), &one, x_, x, y_, dy, weights_.how, weights_.algorithm,
                                               workspace.memory, workspace.bytes, &zero, filters_, dw));
    after_launch(handle.stream(), "cudnnConvolutionBackwardFilter");
}

std::size_t DnnConvolution::workspace() const {
    return std::max({forward_.workspace, data_.workspace, weights_.workspace});
}

std::string DnnConvolution::text() const {
    const SampleShape out = shape_.out();
    return fmt::format("convolution {}x{}x{} -> {}x{}x{}, kernel {}x{}, stride {}x{}, {} rows, {}", shape_.in.height,
                       shape_.in.width, shape_.in.channels, out.height, out.width, out.channels, shape_.kernel_h,
                       shape_.kernel_w, shape_.stride_h, shape_.stride_w, rows_, precision_name(precision_));
}

std::string DnnConvolution::algorithms() const {
    return fmt::format("{}: forward {}, data gradient {}, weight gradient {}, workspace {} KiB", text(),
                       name_of(forward_.algorithm), backward_data_ ? name_of(data_.algorithm) : "none",
                       name_of(weights_.algorithm), (workspace() + 1023) / 1024);
}

}  // namespace lockstep

#endif

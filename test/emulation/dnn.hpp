// The emulated cuDNN between its files: what lies behind its handles and descriptors, one convolution resolved from
// them, and the algorithms that it has. Only the convolution calls of its older interface that vendor arithmetic uses
// exist; a further one does not link.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>

#include "test/emulation/blas_product.hpp"
#include "test/emulation/runtime.hpp"

struct cudnnContext {
    static constexpr uint64_t kAlive = 0x444e'4e41'4c49'5645ULL;
    uint64_t alive = kAlive;
    int device = 0;
    cudaStream_t stream = nullptr;
};

// A descriptor is unset until the library's Set function ran.
struct cudnnTensorStruct {
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
    cudnnDataType_t type = CUDNN_DATA_DOUBLE;
    int n = 0, c = 0, h = 0, w = 0;
};
struct cudnnFilterStruct {
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
    cudnnDataType_t type = CUDNN_DATA_DOUBLE;
    int k = 0, c = 0, h = 0, w = 0;
};
struct cudnnConvolutionStruct {
    int pad_h = 0, pad_w = 0, stride_h = 0, stride_w = 0, dilation_h = 0, dilation_w = 0;
    int groups = 1;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
};

namespace lockstep::emulation {

enum class DnnPass { kForward, kBackwardData, kBackwardFilter };

/// A convolution with all its numbers: x [n][h][w][c], filters [k][r][s][c / groups], y [n][p][q][k].
struct DnnConvolution {
    Number number = Number::kFp32;
    int n = 0, h = 0, w = 0, c = 0, k = 0, r = 0, s = 0, p = 0, q = 0;
    cudnnConvolutionStruct how;
    int64_t x_elements() const { return int64_t{n} * h * w * c; }
    int64_t filter_elements() const { return int64_t{k} * r * s * (c / how.groups); }
    int64_t y_elements() const { return int64_t{n} * p * q * k; }
};

/// The body of a C function: its status is the library's own unless the device is at fault.
template <class Body>
cudnnStatus_t dnn_call(const char* name, Body body) {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const cudaError_t error = call(name, [&] {
        status = body();
        return cudaSuccess;
    });
    return error == cudaSuccess ? status : CUDNN_STATUS_EXECUTION_FAILED;
}

/// Prints why and returns `status`.
cudnnStatus_t dnn_refuse(cudnnStatus_t status, const std::string& message);

/// Fails on a handle that does not live or belongs to another device.
void dnn_need_alive(cudnnHandle_t handle, const char* name);

/// The convolution of four descriptors; what the real library refuses gives its status, what is not emulated fails.
cudnnStatus_t dnn_resolve(const char* name, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t filter,
                          cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y, DnnConvolution& convolution);

/// An algorithm as the library offers it for a convolution. The list begins with those that must not be taken.
struct DnnAlgorithm {
    int algorithm;
    cudnnStatus_t status;
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
    size_t workspace;
};
inline constexpr int kDnnAlgorithms = 4;
struct DnnAlgorithms {
    DnnAlgorithm list[kDnnAlgorithms];
};
DnnAlgorithms dnn_algorithms(DnnPass pass, const DnnConvolution& convolution);

/// What `algorithm` needs with the math type of the convolution's descriptor. Fails on a non-deterministic one.
cudnnStatus_t dnn_workspace(DnnPass pass, const DnnConvolution& convolution, int algorithm, size_t& bytes);

/// The sums; memory as translated, `length` from OrderOf.
void dnn_run(DnnPass pass, const DnnConvolution& convolution, int64_t length, const void* first, const void* second,
             void* result);

}  // namespace lockstep::emulation

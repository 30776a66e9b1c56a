// Handles and descriptors of the emulated cuDNN.
#include "test/emulation/dnn.hpp"

#include <fmt/format.h>

#include "test/emulation/memory.hpp"

using namespace lockstep::emulation;

namespace lockstep::emulation {
namespace {

bool known(cudnnDataType_t type) {
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

Number number_of(cudnnDataType_t type, cudnnMathType_t math) {
    if (type == CUDNN_DATA_HALF) return Number::kFp16;
    if (type == CUDNN_DATA_BFLOAT16) return Number::kBf16;
    return math == CUDNN_FMA_MATH ? Number::kFp32 : Number::kTf32;  // the default permits tf32
}

int out_size(int in, int pad, int kernel, int stride, int dilation) {
    return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

}  // namespace

cudnnStatus_t dnn_refuse(cudnnStatus_t status, const std::string& message) {
    refuse(cudaErrorInvalidValue, message);
    return status;
}

void dnn_need_alive(cudnnHandle_t handle, const char* name) {
    if (handle == nullptr || handle->alive != cudnnContext::kAlive) {
        fail(fmt::format("{}: no cuDNN handle, or one that was destroyed", name));
    }
    if (handle->device != current_device()) {
        fail(fmt::format("{}: handle of device {} used while device {} is current", name, handle->device,
                         current_device()));
    }
}

cudnnStatus_t dnn_resolve(const char* name, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t filter,
                          cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y, DnnConvolution& convolution) {
    if (x == nullptr || filter == nullptr || how == nullptr || y == nullptr) {
        return dnn_refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, fmt::format("{}: no descriptor", name));
    }
    if (x->n == 0 || filter->k == 0 || how->stride_h == 0 || y->n == 0) {
        return dnn_refuse(CUDNN_STATUS_BAD_PARAM, fmt::format("{}: a descriptor that was never set", name));
    }
    if (x->type != y->type || x->type != filter->type) {
        return dnn_refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                          fmt::format("{}: types {}, {} and {} do not go together", name, static_cast<int>(x->type),
                                      static_cast<int>(filter->type), static_cast<int>(y->type)));
    }
    convolution = {
        number_of(x->type, how->math), x->n, x->h, x->w, x->c, filter->k, filter->h, filter->w, y->h, y->w, *how};
    const cudnnConvolutionStruct& c = *how;
    const bool fits = x->n == y->n && y->c == filter->k && filter->c * c.groups == x->c && filter->k % c.groups == 0 &&
                      y->h == out_size(x->h, c.pad_h, filter->h, c.stride_h, c.dilation_h) &&
                      y->w == out_size(x->w, c.pad_w, filter->w, c.stride_w, c.dilation_w);
    if (!fits) {
        return dnn_refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          fmt::format("{}: x {}x{}x{}x{}, filters {}x{}x{}x{}, y {}x{}x{}x{} and {} groups do not fit",
                                      name, x->n, x->h, x->w, x->c, filter->k, filter->h, filter->w, filter->c, y->n,
                                      y->h, y->w, y->c, c.groups));
    }
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace lockstep::emulation

namespace {

template <class Descriptor>
cudnnStatus_t create(const char* name, Descriptor** made) {
    return dnn_call(name, [&] {
        *made = new Descriptor;
        return CUDNN_STATUS_SUCCESS;
    });
}

// Also after a fault, as destructors do; so no call(), which would refuse.
template <class Descriptor>
cudnnStatus_t destroy(Descriptor* descriptor) {
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

void need_layout(const char* name, cudnnTensorFormat_t format, cudnnDataType_t type) {
    if (format != CUDNN_TENSOR_NHWC || !known(type)) {
        fail(fmt::format("{}: layout {} of type {} is not emulated, only NHWC of fp32, fp16 and bf16", name,
                         static_cast<int>(format), static_cast<int>(type)));
    }
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() {
    return CUDNN_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
        case CUDNN_STATUS_SUCCESS:
            return "CUDNN_STATUS_SUCCESS";
        case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
            return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
        case CUDNN_STATUS_EXECUTION_FAILED:
            return "CUDNN_STATUS_EXECUTION_FAILED";
        default:
            return status >= 3000 ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
    }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    return dnn_call("cudnnCreate", [&] {
        if (libraries_lack_memory()) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
        *handle = new cudnnContext;
        (*handle)->device = current_device();
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    if (handle == nullptr || handle->alive != cudnnContext::kAlive) return CUDNN_STATUS_BAD_PARAM;
    handle->alive = 0;
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    return dnn_call("cudnnSetStream", [&] {
        dnn_need_alive(handle, "cudnnSetStream");
        if (device_of(stream) != handle->device) {
            return dnn_refuse(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "cudnnSetStream: a stream of another device");
        }
        handle->stream = stream;
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
    return create("cudnnCreateTensorDescriptor", tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
    return destroy(tensor);
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
    return create("cudnnCreateFilterDescriptor", filter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
    return destroy(filter);
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
    return create("cudnnCreateConvolutionDescriptor", convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
    return destroy(convolution);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    return dnn_call("cudnnSetTensor4dDescriptor", [&] {
        need_layout("cudnnSetTensor4dDescriptor", format, type);
        if (n < 1 || c < 1 || h < 1 || w < 1) {
            return dnn_refuse(CUDNN_STATUS_BAD_PARAM,
                              fmt::format("cudnnSetTensor4dDescriptor: n {} c {} h {} w {}", n, c, h, w));
        }
        *tensor = {format, type, n, c, h, w};
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    return dnn_call("cudnnSetFilter4dDescriptor", [&] {
        need_layout("cudnnSetFilter4dDescriptor", format, type);
        if (k < 1 || c < 1 || h < 1 || w < 1) {
            return dnn_refuse(CUDNN_STATUS_BAD_PARAM,
                              fmt::format("cudnnSetFilter4dDescriptor: k {} c {} h {} w {}", k, c, h, w));
        }
        *filter = {format, type, k, c, h, w};
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w, int u,
                                              int v, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    return dnn_call("cudnnSetConvolution2dDescriptor", [&] {
        if (mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT) {
            fail(fmt::format("cudnnSetConvolution2dDescriptor: mode {} with compute type {} is not emulated",
                             static_cast<int>(mode), static_cast<int>(compute)));
        }
        if (pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1) {
            return dnn_refuse(CUDNN_STATUS_BAD_PARAM,
                              fmt::format("cudnnSetConvolution2dDescriptor: padding {} {}, stride {} {}, dilation {} "
                                          "{}",
                                          pad_h, pad_w, u, v, dilation_h, dilation_w));
        }
        *convolution = {pad_h, pad_w, u, v, dilation_h, dilation_w};
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
    return dnn_call("cudnnSetConvolutionGroupCount", [&] {
        if (groups < 1) return dnn_refuse(CUDNN_STATUS_BAD_PARAM, "cudnnSetConvolutionGroupCount: less than 1");
        convolution->groups = groups;
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
    return dnn_call("cudnnSetConvolutionMathType", [&] {
        if (math != CUDNN_DEFAULT_MATH && math != CUDNN_TENSOR_OP_MATH && math != CUDNN_FMA_MATH) {
            fail(fmt::format("cudnnSetConvolutionMathType: type {} is not emulated", static_cast<int>(math)));
        }
        convolution->math = math;
        return CUDNN_STATUS_SUCCESS;
    });
}

}  // extern "C"

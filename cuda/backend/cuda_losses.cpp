// The losses of the GPU backend beside the plain softmax cross entropy.
#include "cuda/backend/cuda_backend.hpp"
#include "cuda/kernels/losses.h"

namespace lockstep {

void CudaBackend::smoothed_cross_entropy(Stream& stream, int rows, int classes, float smoothing, const float* logits,
                                         const int32_t* labels, float* loss, float* dlogits) {
    const NvtxRange range("loss");
    launch_smoothed_cross_entropy(rows, classes, smoothing, logits, labels, loss, dlogits, cuda_stream(stream));
}

void CudaBackend::sigmoid_cross_entropy(Stream& stream, int rows, const float* logits, const int32_t* labels,
                                        float* loss, float* dlogits) {
    const NvtxRange range("loss");
    launch_sigmoid_cross_entropy(rows, logits, labels, loss, dlogits, cuda_stream(stream));
}

void CudaBackend::sigmoid(Stream& stream, int64_t n, const float* x, float* y) {
    launch_sigmoid(n, x, y, cuda_stream(stream));
}

void CudaBackend::sigmoid_backward(Stream& stream, int64_t n, const float* y, const float* dy, float* dx) {
    launch_sigmoid_backward(n, y, dy, dx, cuda_stream(stream));
}

void CudaBackend::squared_error(Stream& stream, int rows, const float* predictions, const float* targets, float* loss,
                                float* dpredictions) {
    const NvtxRange range("loss");
    launch_squared_error(rows, predictions, targets, loss, dpredictions, cuda_stream(stream));
}

}  // namespace lockstep

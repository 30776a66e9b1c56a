// Pooling on the GPU: nothing is planned, the shape says all.
#include "cuda/kernels/pool.h"
#include "backend/pool_windows.hpp"
#include "cuda/backend/cuda_context.hpp"

namespace lockstep {
namespace {

class CudaPool final : public Pool {
  public:
    explicit CudaPool(const PoolShape& shape) : shape_(shape) {}
    void forward(Stream& stream, int rows, const float* x, float* y, uint8_t* taps) override {
        launch_pool_forward(shape_, rows, x, y, taps, cuda_stream(stream));
    }
    void backward(Stream& stream, int rows, const float* dy, const uint8_t* taps, const float* masked_by,
                  float* dx) override {
        launch_pool_backward(shape_, rows, dy, taps, masked_by, dx, cuda_stream(stream));
    }

  private:
    PoolShape shape_;
};

}  // namespace

std::unique_ptr<Pool> make_cuda_pool(CudaContext&, const PoolShape& shape) {
    check_pool_shape(shape);
    return std::make_unique<CudaPool>(shape);
}

}  // namespace lockstep

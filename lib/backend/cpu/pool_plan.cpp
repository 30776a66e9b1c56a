#include "backend/cpu/pool_plan.hpp"

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/slices.hpp"

namespace lockstep {
namespace {

class CpuPool : public Pool {
  public:
    CpuPool(const PoolKernels& kernels, const PoolShape& shape) : kernels_(kernels), shape_(shape) {}

    void forward(Stream& stream, int rows, const float* x, float* y, uint8_t* taps) override {
        for_slices(cpu_stream(stream), int64_t{rows} * shape_.out_h(), 1, worth_threads(rows),
                   [&](int64_t begin, int64_t end) {
                       if (shape_.kind == PoolKind::kMax) {
                           kernels_.max_forward(shape_, begin, end, x, y, taps);
                       } else {
                           kernels_.average_forward(shape_, begin, end, x, y);
                       }
                   });
    }

    void backward(Stream& stream, int rows, const float* dy, const uint8_t* taps, const float* masked_by,
                  float* dx) override {
        for_slices(cpu_stream(stream), int64_t{rows} * shape_.in.height, 1, worth_threads(rows),
                   [&](int64_t begin, int64_t end) {
                       if (shape_.kind == PoolKind::kMax) {
                           kernels_.max_backward(shape_, begin, end, dy, taps, masked_by, dx);
                       } else {
                           kernels_.average_backward(shape_, begin, end, dy, masked_by, dx);
                       }
                   });
    }

  private:
    bool worth_threads(int rows) const { return rows * shape_.in.elements() >= kElementsWorthThreads; }

    const PoolKernels& kernels_;
    PoolShape shape_;
};

}  // namespace

std::unique_ptr<Pool> make_cpu_pool(CpuContext& context, const PoolShape& shape) {
    check_pool_shape(shape);
    return std::make_unique<CpuPool>(pool_kernels(context.isa()), shape);
}

}  // namespace lockstep

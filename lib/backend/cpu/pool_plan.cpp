#include "backend/cpu/pool_plan.hpp"

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/slices.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

void check_axis(const PoolAxis& axis, int pad_after, const char* name) {
    if (axis.in < 1 || axis.kernel < 1 || axis.pad < 0 || pad_after < 0) {
        fail(ErrorKind::kUsage,
             "pooling: {} {} with kernel {}, padding {} and {}: sizes must be positive, padding at least 0", name,
             axis.in, axis.kernel, axis.pad, pad_after);
    }
    if (axis.in + axis.pad + pad_after < axis.kernel) {
        fail(ErrorKind::kUsage,
             "pooling: kernel {} does not fit into {} {} with padding {} and {}; use a smaller kernel", axis.kernel,
             name, axis.in, axis.pad, pad_after);
    }
    for (const int window : {0, axis.out - 1}) {
        if (axis.first_tap(window) >= axis.end_tap(window)) {
            fail(ErrorKind::kUsage,
                 "pooling: window {} of {} {} lies in the padding ({} and {}) alone; use less padding", window, name,
                 axis.in, axis.pad, pad_after);
        }
    }
}

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

void check_pool_shape(const PoolShape& shape) {
    if (shape.stride_h < 1 || shape.stride_w < 1) {
        fail(ErrorKind::kUsage, "pooling: stride {} x {} must be positive", shape.stride_h, shape.stride_w);
    }
    check_axis(pool_rows(shape), shape.pad_bottom, "height");
    check_axis(pool_columns(shape), shape.pad_right, "width");
    if (shape.kind == PoolKind::kMax && shape.kernel_h * shape.kernel_w > kMaxPoolTaps) {
        fail(ErrorKind::kUsage, "max pooling: a kernel of {} x {} has more than {} taps; use a smaller kernel",
             shape.kernel_h, shape.kernel_w, kMaxPoolTaps);
    }
}

std::unique_ptr<Pool> make_cpu_pool(CpuContext& context, const PoolShape& shape) {
    check_pool_shape(shape);
    return std::make_unique<CpuPool>(pool_kernels(context.isa()), shape);
}

}  // namespace lockstep

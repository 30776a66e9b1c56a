// The same operations by oneDNN on one thread, to compare the kernels with; none where oneDNN was not found when
// configuring.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep::test {

class KernelPeer {
  public:
    using Calls = std::vector<std::function<void()>>;  // dense: matmul; others: in NHWC, in a layout of its choice

    KernelPeer();
    ~KernelPeer();
    Calls dense_forward(int rows, int in, int out, float* x, float* w, float* y);
    Calls dense_backward_data(int rows, int in, int out, float* dy, float* w, float* dx);
    Calls dense_backward_weights(int rows, int in, int out, float* x, float* dy, float* dw);
    Calls conv_forward(const ConvShape& shape, int rows, float* x, float* w, float* y);
    Calls conv_backward_data(const ConvShape& shape, int rows, float* dy, float* w, float* dx);
    Calls conv_backward_weights(const ConvShape& shape, int rows, float* x, float* dy, float* dw);
    // Batch norm and relu of [rows][size][size][channels], in training; backward needs a forward before it.
    Calls norm_forward(int rows, int size, int channels, float* x);
    Calls norm_backward(int rows, int size, int channels, float* x, float* dy);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace lockstep::test

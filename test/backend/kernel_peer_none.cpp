// oneDNN was not found: there is nothing to compare with.
#include "kernel_peer.hpp"

namespace lockstep::test {

struct KernelPeer::State {};
KernelPeer::KernelPeer() = default;
KernelPeer::~KernelPeer() = default;
KernelPeer::Calls KernelPeer::dense_forward(int, int, int, float*, float*, float*) {
    return {};
}
KernelPeer::Calls KernelPeer::dense_backward_data(int, int, int, float*, float*, float*) {
    return {};
}
KernelPeer::Calls KernelPeer::dense_backward_weights(int, int, int, float*, float*, float*) {
    return {};
}
KernelPeer::Calls KernelPeer::conv_forward(const ConvShape&, int, float*, float*, float*) {
    return {};
}
KernelPeer::Calls KernelPeer::conv_backward_data(const ConvShape&, int, float*, float*, float*) {
    return {};
}
KernelPeer::Calls KernelPeer::conv_backward_weights(const ConvShape&, int, float*, float*, float*) {
    return {};
}
KernelPeer::Calls KernelPeer::norm_forward(int, int, int, float*) {
    return {};
}
KernelPeer::Calls KernelPeer::norm_backward(int, int, int, float*, float*) {
    return {};
}

}  // namespace lockstep::test

#include "train/host_view.hpp"

namespace lockstep {

const void* HostView::read_bytes(const void* device, std::size_t bytes) {
    if (backend_.host_sees_device()) {
        backend_.wait(backend_.main());
        return device;
    }
    if (!copy_ || copy_->bytes() < bytes) {
        copy_.reset();
        copy_ = backend_.allocate_host(bytes);
    }
    if (bytes > 0) backend_.download(backend_.main(), device, copy_->data(), bytes);
    backend_.wait(backend_.main());
    return copy_->data();
}

void* DeviceScratch::bytes(std::size_t count) {
    if (!memory_ || memory_->bytes() < count) {
        memory_.reset();
        memory_ = backend_.allocate(count);
    }
    return memory_->data();
}

}  // namespace lockstep

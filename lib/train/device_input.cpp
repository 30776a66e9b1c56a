#include "train/device_input.hpp"

#include <utility>

namespace lockstep {
namespace {

NetworkInput input_of(const Batch& batch) {
    NetworkInput input;
    input.epoch = batch.at.epoch;
    input.rows = batch.rows;
    input.pixels = batch.pixels;
    input.labels = batch.labels;
    input.positions = batch.positions;
    return input;
}

}  // namespace

DeviceInput::DeviceInput(Backend& backend, int64_t sample_elements)
    : backend_(backend), sample_elements_(sample_elements), sets_{Set(backend), Set(backend)} {}

LoaderOptions DeviceInput::with_memory(LoaderOptions options) const {
    if (backend_.host_sees_device()) return options;
    options.memory = [&backend = backend_](std::size_t bytes) {
        const std::shared_ptr<Buffer> buffer = backend.allocate_host(bytes);
        return std::shared_ptr<std::byte>(buffer, buffer->data());
    };
    return options;
}

NetworkInput DeviceInput::rows(const Batch& batch) {
    if (backend_.host_sees_device() || batch.rows == 0) return input_of(batch);
    turn_ = 1 - turn_;
    Set& set = sets_[turn_];
    if (set.holds != &batch) copy(set, batch);
    set.holds = nullptr;
    backend_.order(backend_.communication(), backend_.main());
    return set.input;
}

void DeviceInput::copy_ahead(const Batch& batch) {
    if (backend_.host_sees_device() || batch.rows == 0) return;
    Set& set = sets_[1 - turn_];
    copy(set, batch);
    set.holds = &batch;
}

void DeviceInput::copy(Set& set, const Batch& batch) {
    const auto rows = static_cast<std::size_t>(batch.rows);
    set.input = input_of(batch);
    const auto put = [&](auto*& place, DeviceScratch& memory, std::size_t count) {
        using Value = std::remove_const_t<std::remove_reference_t<decltype(*place)>>;
        Value* const device = memory.at_least<Value>(count);
        backend_.upload(backend_.communication(), place, device, count * sizeof(Value));
        place = device;
    };
    put(set.input.pixels, set.pixels, rows * static_cast<std::size_t>(sample_elements_));
    put(set.input.labels, set.labels, rows);
    put(set.input.positions, set.positions, rows);
}

}  // namespace lockstep

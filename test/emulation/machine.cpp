// Handles and queues, and what the host's calls add to the happens-before order; see machine.hpp. waiting.cpp is the
// host's waiting, executor.cpp runs the queues.
#include "test/emulation/machine.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "test/emulation/fault_trap.hpp"
#include "test/emulation/machine_device.hpp"
#include "test/emulation/memory.hpp"

namespace lockstep::emulation {
namespace {

constexpr std::size_t kGraves = 4096;

// Executors leave signals for the program to the program's own threads.
void block_signals() {
    sigset_t set;
    sigfillset(&set);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

Machine& Machine::get() {
    // Never destroyed: executors run until the process ends.
    static Machine* const machine = new Machine;
    return *machine;
}

Machine::Device& Machine::device(int index) {
    const auto i = static_cast<std::size_t>(index);
    if (devices_.size() <= i) devices_.resize(i + 1);
    if (!devices_[i]) {
        devices_[i] = std::make_unique<Device>();
        devices_[i]->index = index;
        std::thread([this, d = devices_[i].get()] {
            block_signals();
            run_device(*d);
        }).detach();
    }
    return *devices_[i];
}

std::size_t Machine::take_slot() {
    const auto known =
        std::find_if(retired_.begin(), retired_.end(), [this](const auto& r) { return r.second <= host_.at(r.first); });
    if (known == retired_.end()) return slots_++;
    const std::size_t slot = known->first;
    retired_.erase(known);
    return slot;
}

cudaStream_t Machine::create_stream(int index) {
    const std::lock_guard lock(mutex_);
    auto stream = std::make_shared<Stream>();
    stream->device = index;
    stream->slot = take_slot();
    stream->clock = host_;
    device(index).streams.push_back(stream);
    auto* handle = reinterpret_cast<cudaStream_t>(stream.get());
    streams_.emplace(handle, std::move(stream));
    return handle;
}

void Machine::destroy_stream(cudaStream_t handle) {
    const std::lock_guard lock(mutex_);
    const auto stream = find(handle);
    streams_.erase(handle);
    graveyard_.push_back(stream);
    if (graveyard_.size() > kGraves) graveyard_.pop_front();
    // As on a device, the call returns at once and the work that is left still runs.
    stream->destroyed = true;
    if (stream->queue.empty()) {
        retire(*stream);
    } else {
        want(*stream, stream->pushed);
    }
}

void Machine::retire(Stream& stream) {
    retired_.emplace_back(stream.slot, stream.clock.at(stream.slot));
    std::erase_if(device(stream.device).streams, [&](const auto& s) { return s.get() == &stream; });
}

cudaEvent_t Machine::create_event(int index, bool timed) {
    const std::lock_guard lock(mutex_);
    auto event = std::make_shared<Event>();
    event->device = index;
    event->timed = timed;
    auto* handle = reinterpret_cast<cudaEvent_t>(event.get());
    events_.emplace(handle, std::move(event));
    return handle;
}

void Machine::destroy_event(cudaEvent_t handle) {
    const std::lock_guard lock(mutex_);
    graveyard_.push_back(find(handle));
    if (graveyard_.size() > kGraves) graveyard_.pop_front();
    events_.erase(handle);
}

std::shared_ptr<Stream> Machine::find(cudaStream_t handle) {
    if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
        fail(cudaErrorInvalidResourceHandle,
             "the default stream is used; it orders itself against others in ways that "
             "depend on how the program was built");
    }
    const auto found = streams_.find(handle);
    if (found == streams_.end()) fail(cudaErrorInvalidResourceHandle, "a stream that does not exist or was destroyed");
    return found->second;
}

std::shared_ptr<Event> Machine::find(cudaEvent_t handle) {
    const auto found = events_.find(handle);
    if (found == events_.end()) fail(cudaErrorInvalidResourceHandle, "an event that does not exist or was destroyed");
    return found->second;
}

int Machine::device_of(cudaStream_t handle) {
    const std::lock_guard lock(mutex_);
    return find(handle)->device;
}

void Machine::access(cudaStream_t handle, const void* pointer, std::size_t bytes, bool write, const std::string& what) {
    if (pointer == nullptr || bytes == 0) return;
    const std::lock_guard lock(mutex_);
    const auto stream = find(handle);
    if (stream->capture != nullptr) {
        Capture& capture = *stream->capture;
        capture.operations.emplace_back(Capture::Touch{capture.number_of(stream), pointer, bytes, write, what});
        return;
    }
    const std::uint64_t time = std::max(stream->clock.at(stream->slot), host_.at(stream->slot)) + 1;
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    device(stream->device).log.add({begin, begin + bytes, write, stream->slot, time, what}, stream->clock, host_);
}

void Machine::enqueue(Stream& stream, Task task) {
    Device& d = device(stream.device);
    if (d.sticky) throw KnownFault(*d.sticky);
    stream.queue.push_back(std::move(task));
    ++stream.pushed;
    stream.clock.join(host_);
    stream.clock.tick(stream.slot);
    d.last_call = Device::Clock::now();
    if (settings().order != Order::kLazy || stream.queue.size() == 1) d.wake.notify_all();
}

void Machine::push(cudaStream_t handle, const std::string& what, std::function<bool()> poll) {
    const std::lock_guard lock(mutex_);
    const auto stream = find(handle);
    if (!captured_work(*stream, what, poll)) enqueue(*stream, {what, std::move(poll), nullptr, 0});
}

void Machine::push_kernel(const LaunchSpec& spec, const std::string& what, std::vector<Range> ranges,
                          std::shared_ptr<KernelCall> kernel) {
    const std::lock_guard lock(mutex_);
    const auto stream = find(spec.stream);
    Device& d = device(stream->device);
    const auto opt_in = d.shared_opt_in.find(spec.kernel);
    const std::size_t limit = std::max(std::size_t{48} << 10, opt_in == d.shared_opt_in.end() ? 0 : opt_in->second);
    std::function<bool()> poll = [&d, spec, limit, number = d.launches++, ranges = std::move(ranges),
                                  kernel = std::move(kernel)] {
        d.runner.run(spec, *kernel, limit, number);
        // Here and not at the next synchronisation: the message names the kernel.
        for (const Range& r : ranges) {
            if (r.write) device_memory().check_slack_around(r.pointer);
        }
        return true;
    };
    if (!captured_work(*stream, what, poll)) enqueue(*stream, {what, std::move(poll), nullptr, 0});
}

void Machine::record(cudaEvent_t event_handle, cudaStream_t stream_handle) {
    const std::lock_guard lock(mutex_);
    const auto event = find(event_handle);
    const auto stream = find(stream_handle);
    if (event->device != stream->device) {
        fail(cudaErrorInvalidResourceHandle,
             fmt::format("an event of device {} is recorded on a stream of device {}", event->device, stream->device));
    }
    event->completed.reset();
    if (captured_record(*event, *stream)) return;
    if (event->timed) {
        event->completed = std::make_shared<Event::Time>();
        enqueue(*stream, {"cudaEventRecord",
                          [at = event->completed] {
                              *at = std::chrono::steady_clock::now();
                              return true;
                          },
                          nullptr, 0});
    }
    stream->clock.join(host_);
    event->stream = stream;
    event->at = stream->pushed;
    event->clock = stream->clock;
}

void Machine::wait(cudaStream_t stream_handle, cudaEvent_t event_handle) {
    const std::lock_guard lock(mutex_);
    const auto event = find(event_handle);
    const auto stream = find(stream_handle);
    if (captured_wait(stream, *event)) return;
    if (!event->stream) return;  // never recorded: no wait, as the real runtime has it
    stream->clock.join(event->clock);
    if (event->stream != stream) enqueue(*stream, {"cudaStreamWaitEvent", nullptr, event->stream, event->at});
}

std::optional<Fault> Machine::sticky(int index) {
    const std::lock_guard lock(mutex_);
    const auto i = static_cast<std::size_t>(index);  // a device that was never used has no executor yet, and needs none
    return i < devices_.size() && devices_[i] ? devices_[i]->sticky : std::nullopt;
}

void Machine::make_sticky(int index, const Fault& fault_found) {
    const std::lock_guard lock(mutex_);
    fault(device(index), fault_found);
}

void Machine::reset(int index) {
    Lock lock(mutex_);
    Device& d = device(index);
    for (const auto& s : d.streams) {
        host_.join(s->clock);
        s->queue.clear();
        s->done = s->pushed;
    }
    d.moved.notify_all();
    d.moved.wait(lock, [&] { return !d.busy; });
    for (const auto& s : std::vector(d.streams)) {
        streams_.erase(reinterpret_cast<cudaStream_t>(s.get()));
        graveyard_.push_back(s);
        retire(*s);
    }
    std::erase_if(events_, [&](const auto& e) { return e.second->device == index; });
    std::erase_if(captures_, [&](const auto& c) { return c->device == index; });
    std::erase_if(graphs_, [&](const auto& g) { return g.second->contents->device == index; });
    std::erase_if(execs_, [&](const auto& e) { return e.second->contents->device == index; });
    d.log.clear();
    d.shared_opt_in.clear();
    d.launches = 0;
    d.sticky.reset();
    lock.unlock();
    device_memory().release_all(index);
    pinned_memory().release_all(index);
}

void Machine::allow_shared(int index, const void* kernel, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    device(index).shared_opt_in[kernel] = bytes;
}

std::size_t Machine::shared_allowed(int index, const void* kernel) {
    const std::lock_guard lock(mutex_);
    const auto found = device(index).shared_opt_in.find(kernel);
    return found == device(index).shared_opt_in.end() ? std::size_t{48} << 10 : found->second;
}

}  // namespace lockstep::emulation

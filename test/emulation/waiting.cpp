// How host threads wait for streams and events, and what they know afterwards; see machine.hpp.
#include <algorithm>

#include "test/emulation/machine_device.hpp"
#include "test/emulation/memory.hpp"

namespace lockstep::emulation {

void Machine::want(Stream& stream, std::uint64_t until) {
    stream.wanted = std::max(stream.wanted, until);
    device(stream.device).wake.notify_all();
}

void Machine::drain(Lock& lock, Stream& stream, std::uint64_t until) {
    Device& d = device(stream.device);
    if (stream.done < until) {
        want(stream, until);
        stream.host_waits.push_back(until);
        d.moved.wait(lock, [&] { return stream.done >= until || d.sticky; });
        stream.host_waits.erase(std::find(stream.host_waits.begin(), stream.host_waits.end(), until));
    }
    d.last_call = Device::Clock::now();
    if (d.sticky) throw KnownFault(*d.sticky);
}

void Machine::synchronize(cudaStream_t handle) {
    Lock lock(mutex_);
    const auto stream = find(handle);
    refuse_captured(*stream, "cudaStreamSynchronize");
    const VectorClock clock = stream->clock;  // other threads may push more while this one waits
    drain(lock, *stream, stream->pushed);
    host_.join(clock);
    lock.unlock();
    device_memory().check_slack(stream->device);
}

void Machine::synchronize(cudaEvent_t handle) {
    Lock lock(mutex_);
    const auto event = find(handle);
    if (event->capture != nullptr)
        fail(cudaErrorCapturedEvent, "an event that was recorded in a capture is waited for");
    if (!event->stream) return;
    const auto stream = event->stream;
    const VectorClock clock = event->clock;
    drain(lock, *stream, event->at);
    host_.join(clock);
}

void Machine::synchronize_device(int index) {
    Lock lock(mutex_);
    Device& d = device(index);
    if (d.sticky) throw KnownFault(*d.sticky);
    const auto streams = d.streams;
    std::vector<std::pair<VectorClock, std::uint64_t>> ends;
    for (const auto& s : streams) {
        ends.emplace_back(s->clock, s->pushed);
        want(*s, s->pushed);
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
        drain(lock, *streams[i], ends[i].second);
        host_.join(ends[i].first);
    }
    lock.unlock();
    device_memory().check_slack(index);
}

bool Machine::query(cudaStream_t handle) {
    const std::lock_guard lock(mutex_);
    const auto stream = find(handle);
    refuse_captured(*stream, "cudaStreamQuery");
    if (const auto& fault = device(stream->device).sticky) throw KnownFault(*fault);
    if (stream->done >= stream->pushed) {
        host_.join(stream->clock);
        return true;
    }
    want(*stream, stream->done + 1);
    return false;
}

bool Machine::query(cudaEvent_t handle) {
    const std::lock_guard lock(mutex_);
    const auto event = find(handle);
    if (event->capture != nullptr) fail(cudaErrorCapturedEvent, "an event that was recorded in a capture is asked for");
    if (!event->stream) return true;
    Stream& stream = *event->stream;
    if (const auto& fault = device(stream.device).sticky) throw KnownFault(*fault);
    if (stream.done >= event->at) {
        host_.join(event->clock);
        return true;
    }
    want(stream, stream.done + 1);
    return false;
}

std::optional<float> Machine::elapsed(cudaEvent_t start, cudaEvent_t end) {
    const std::lock_guard lock(mutex_);
    const auto a = find(start), b = find(end);
    if (!a->completed || !b->completed || a->stream->done < a->at || b->stream->done < b->at) return std::nullopt;
    return std::chrono::duration<float, std::milli>(*b->completed - *a->completed).count();
}

}  // namespace lockstep::emulation

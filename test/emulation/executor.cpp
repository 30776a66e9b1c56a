// The executor thread of a device: picks streams by the order mode and runs their work, one piece at a time. It is a
// thread of its own because the host thread of a rank may wait in MPI while its peer waits for this device.
#include <algorithm>
#include <cstdio>

#include "test/emulation/current_device.hpp"
#include "test/emulation/fault_trap.hpp"
#include "test/emulation/machine_device.hpp"

namespace lockstep::emulation {
namespace {

using namespace std::chrono_literals;

// A device runs everything in the end, whether or not somebody waits.
constexpr auto kHostSilence = 20ms;
constexpr auto kPollInterval = 50us;
constexpr auto kChanceInterval = 200us;

}  // namespace

void Machine::run_device(Device& device) {
    use_signal_stack();
    set_current_device(device.index);
    Lock lock(mutex_);
    for (;;) {
        const Step last = step(lock, device);
        if (last != Step::kMoved) rest(lock, device, last);
    }
}

Machine::Step Machine::step(Lock& lock, Device& device) {
    const auto streams = device.streams;  // it may change while work runs without the mutex
    if (streams.empty()) return Step::kNothing;
    const bool all = settings().order == Order::kEager || Device::Clock::now() - device.last_call > kHostSilence;
    const bool random = settings().order == Order::kRandom;
    const std::size_t first = random ? device.chance() % streams.size() : 0;
    Step result = Step::kNothing;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        Stream& stream = *streams[(first + i) % streams.size()];
        if (stream.queue.empty()) continue;
        if (!all && stream.wanted <= stream.done && !(random && device.chance() % 4 == 0)) continue;
        result = std::max(result, run_front(lock, device, stream));
        if (result == Step::kMoved) return result;
    }
    return result;
}

Machine::Step Machine::run_front(Lock& lock, Device& device, Stream& stream) {
    if (const auto& other = stream.queue.front().waits_for) {
        if (other->done >= stream.queue.front().until) {
            finish_front(device, stream);
            return Step::kMoved;
        }
        if (other->wanted >= stream.queue.front().until) return Step::kNothing;
        want(*other, stream.queue.front().until);
        return Step::kMoved;
    }
    // Taken out of the queue's front, which stays as its place: a reset may clear the queue meanwhile.
    Task task = std::move(stream.queue.front());
    bool finished = true;
    std::optional<Fault> found;
    device.busy = true;
    lock.unlock();
    try {
        install_fault_handlers();
        run_trapped([&] { finished = task.poll(); });
    } catch (const Fault& f) {
        found = Fault{f.code, task.what + ": " + f.message};
    }
    if (finished) task = {};  // what it holds is released without the mutex
    lock.lock();
    device.busy = false;
    if (found) fault(device, *found);
    if (stream.queue.empty()) {
        device.moved.notify_all();  // a reset of the device may wait for this work to be left
    } else if (finished) {
        finish_front(device, stream);
    } else {
        stream.queue.front() = std::move(task);
    }
    return finished ? Step::kMoved : Step::kPolled;
}

void Machine::finish_front(Device& device, Stream& stream) {
    stream.queue.pop_front();
    ++stream.done;
    const auto& waits = stream.host_waits;
    if (std::find(waits.begin(), waits.end(), stream.done) != waits.end()) device.moved.notify_all();
    for (const auto& other : devices_) {
        if (!other || other.get() == &device) continue;
        for (const auto& s : other->streams) {
            if (!s->queue.empty() && s->queue.front().waits_for.get() == &stream) other->wake.notify_all();
        }
    }
    if (stream.destroyed && stream.queue.empty()) retire(stream);
}

void Machine::rest(Lock& lock, Device& device, Step last) {
    const bool work =
        std::any_of(device.streams.begin(), device.streams.end(), [](const auto& s) { return !s->queue.empty(); });
    if (last == Step::kPolled) {
        device.wake.wait_for(lock, kPollInterval);
    } else if (!work) {
        device.wake.wait(lock);
    } else if (settings().order == Order::kRandom) {
        device.wake.wait_for(lock, kChanceInterval);
    } else {
        device.wake.wait_for(lock, kHostSilence);
    }
}

void Machine::fault(Device& device, const Fault& found) {
    if (device.sticky) return;
    device.sticky = found;
    std::fprintf(stderr, "emulated CUDA, device %d: %s\n", device.index, found.message.c_str());
    for (const auto& s : std::vector(device.streams)) {
        s->queue.clear();
        s->done = s->pushed;
        if (s->destroyed) retire(*s);
    }
    device.moved.notify_all();
}

}  // namespace lockstep::emulation

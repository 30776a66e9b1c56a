// Streams under capture, and graphs: see capture.hpp. A graph's streams beside its origin are streams of the emulation
// that only it uses, as long as it lives.
#include "test/emulation/capture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "test/emulation/machine_device.hpp"

namespace lockstep::emulation {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};

}  // namespace

std::size_t Capture::number_of(const std::shared_ptr<Stream>& stream) {
    const auto known = std::find(streams.begin(), streams.end(), stream);
    if (known != streams.end()) return static_cast<std::size_t>(known - streams.begin());
    streams.push_back(stream);
    clocks.emplace_back();
    return streams.size() - 1;
}

void refuse_in_capture(const char* what) {
    Machine::get().refuse_in_capture(what);
}

void Machine::refuse_in_capture(const char* what) {
    const std::lock_guard lock(mutex_);
    for (const auto& capture : captures_) {
        if (capture->thread != std::this_thread::get_id()) continue;
        fail(cudaErrorStreamCaptureUnsupported,
             fmt::format("{}: while this thread captures a stream it may not wait, ask or allocate", what));
    }
}

void Machine::refuse_captured(const Stream& stream, const char* what) {
    if (stream.capture == nullptr) return;
    fail(cudaErrorStreamCaptureUnsupported, fmt::format("{} of a stream that is being captured", what));
}

void Machine::begin_capture(cudaStream_t handle) {
    const std::lock_guard lock(mutex_);
    const auto stream = find(handle);
    if (stream->capture != nullptr) fail(cudaErrorIllegalState, "the stream is being captured already");
    auto capture = std::make_shared<Capture>();
    capture->device = stream->device;
    capture->thread = std::this_thread::get_id();
    capture->number_of(stream);
    stream->capture = capture;
    captures_.push_back(std::move(capture));
}

bool Machine::is_captured(cudaStream_t handle) {
    const std::lock_guard lock(mutex_);
    return find(handle)->capture != nullptr;
}

cudaGraph_t Machine::end_capture(cudaStream_t handle) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Capture> capture = find(handle)->capture;
    if (capture == nullptr) fail(cudaErrorIllegalState, "the stream is not being captured");
    if (capture->thread != std::this_thread::get_id()) {
        fail(cudaErrorStreamCaptureWrongThread, "a capture is ended by another thread than began it");
    }
    if (capture->streams.front() != find(handle)) {
        fail(cudaErrorStreamCaptureUnmatched, "a capture is ended on another stream than it was begun on");
    }
    std::erase(captures_, capture);
    for (const auto& stream : capture->streams) stream->capture = nullptr;
    for (std::size_t i = 1; i < capture->streams.size(); ++i) {
        if (capture->clocks.front().at(i) == capture->clocks[i].at(i)) continue;
        fail(cudaErrorStreamCaptureUnjoined,
             fmt::format("a stream that was drawn into the capture has work that nothing orders before its end ({})",
                         "an event of it must be waited for"));
    }
    auto graph = std::make_unique<Graph>(Graph{capture});
    auto* const made = reinterpret_cast<cudaGraph_t>(graph.get());
    graphs_.emplace(made, std::move(graph));
    return made;
}

cudaGraphExec_t Machine::instantiate(cudaGraph_t handle) {
    std::shared_ptr<const Capture> contents;
    {
        const std::lock_guard lock(mutex_);
        const auto graph = graphs_.find(handle);
        if (graph == graphs_.end()) fail(cudaErrorInvalidValue, "a graph that does not exist or was destroyed");
        contents = graph->second->contents;
    }
    auto exec = std::make_unique<GraphExec>(GraphExec{contents, {nullptr}, {}});
    for (std::size_t i = 1; i < contents->streams.size(); ++i) exec->streams.push_back(create_stream(contents->device));
    for (std::size_t i = 0; i < contents->records; ++i) exec->events.push_back(create_event(contents->device, false));
    const std::lock_guard lock(mutex_);
    auto* const made = reinterpret_cast<cudaGraphExec_t>(exec.get());
    execs_.emplace(made, std::move(exec));
    return made;
}

Machine::GraphExec& Machine::find(cudaGraphExec_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = execs_.find(handle);
    if (found == execs_.end()) fail(cudaErrorInvalidValue, "an executable graph that does not exist or was destroyed");
    return *found->second;
}

void Machine::launch(cudaGraphExec_t handle, cudaStream_t stream) {
    GraphExec& exec = find(handle);
    if (is_captured(stream)) fail(cudaErrorNotSupported, "a graph in a graph is not emulated");
    std::vector<cudaStream_t> streams = exec.streams;
    streams.front() = stream;
    for (const auto& operation : exec.contents->operations) {
        std::visit(
            Overloaded{[&](const Capture::Touch& t) { access(streams[t.stream], t.pointer, t.bytes, t.write, t.what); },
                       [&](const Capture::Work& w) { push(streams[w.stream], w.what, w.poll); },
                       [&](const Capture::Record& r) { record(exec.events[r.number], streams[r.stream]); },
                       [&](const Capture::Wait& w) { wait(streams[w.stream], exec.events[w.record]); }},
            operation);
    }
}

void Machine::destroy(cudaGraph_t handle) {
    const std::lock_guard lock(mutex_);
    if (graphs_.erase(handle) == 0) fail(cudaErrorInvalidValue, "a graph that does not exist or was destroyed");
}

void Machine::destroy(cudaGraphExec_t handle) {
    const GraphExec& exec = find(handle);
    for (std::size_t i = 1; i < exec.streams.size(); ++i) destroy_stream(exec.streams[i]);
    for (cudaEvent_t event : exec.events) destroy_event(event);
    const std::lock_guard lock(mutex_);
    execs_.erase(handle);
}

// What a call on a stream or event becomes where it is captured; each with the mutex held.
bool Machine::captured_work(Stream& stream, const std::string& what, std::function<bool()>& poll) {
    if (stream.capture == nullptr) return false;
    Capture& capture = *stream.capture;
    const std::size_t number = capture.number_of(stream.shared_from_this());
    capture.clocks[number].tick(number);
    capture.operations.emplace_back(Capture::Work{number, what, std::move(poll)});
    return true;
}

bool Machine::captured_record(Event& event, Stream& stream) {
    event.capture = stream.capture;
    if (stream.capture == nullptr) return false;
    if (event.timed) fail(cudaErrorNotSupported, "an event that keeps the time is not emulated in a capture");
    Capture& capture = *stream.capture;
    const std::size_t number = capture.number_of(stream.shared_from_this());
    event.stream = nullptr;
    event.record = capture.records++;
    event.clock = capture.clocks[number];
    capture.operations.emplace_back(Capture::Record{number, event.record});
    return true;
}

bool Machine::captured_wait(const std::shared_ptr<Stream>& stream, const Event& event) {
    if (event.capture == nullptr) {
        if (stream->capture == nullptr) return false;
        fail(cudaErrorStreamCaptureIsolation,
             "a captured stream waits for an event that was recorded before the capture");
    }
    const bool over = std::find(captures_.begin(), captures_.end(), event.capture) == captures_.end();
    if (over)
        fail(cudaErrorInvalidValue, "a stream waits for an event that was last recorded in a capture that is over");
    if (stream->capture != nullptr && stream->capture != event.capture) {
        fail(cudaErrorStreamCaptureMerge, "two captures are made one by an event");
    }
    Capture& capture = *event.capture;
    stream->capture = event.capture;
    const std::size_t number = capture.number_of(stream);
    capture.clocks[number].join(event.clock);
    capture.operations.emplace_back(Capture::Wait{number, event.record});
    return true;
}

}  // namespace lockstep::emulation

// The emulated machine: its devices, each with one executor thread that runs the streams, and the handles of streams
// and events. The host is one party in the happens-before order: what one of its threads has waited for is known to
// all, since the emulation does not see how they speak to each other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/emulation/capture.hpp"
#include "test/emulation/kernel_call.hpp"
#include "test/emulation/runtime.hpp"
#include "test/emulation/stream.hpp"

namespace lockstep::emulation {

/// A sticky error that was recorded and printed before and is now met again.
struct KnownFault : Fault {
    explicit KnownFault(const Fault& fault) : Fault(fault) {}
};

class Machine {
  public:
    static Machine& get();

    // Handles. A handle that does not exist (any more) fails, and so does the default stream.
    cudaStream_t create_stream(int device);
    void destroy_stream(cudaStream_t stream);
    cudaEvent_t create_event(int device, bool timed);
    void destroy_event(cudaEvent_t event);
    int device_of(cudaStream_t stream);

    // Work.
    void access(cudaStream_t stream, const void* pointer, std::size_t bytes, bool write, const std::string& what);
    void push(cudaStream_t stream, const std::string& what, std::function<bool()> poll);
    void record(cudaEvent_t event, cudaStream_t stream);
    void wait(cudaStream_t stream, cudaEvent_t event);
    void push_kernel(const LaunchSpec& spec, const std::string& what, std::vector<Range> ranges,
                     std::shared_ptr<KernelCall> kernel);

    // Captures and graphs (capture.cpp).
    void begin_capture(cudaStream_t stream);
    bool is_captured(cudaStream_t stream);
    cudaGraph_t end_capture(cudaStream_t stream);
    cudaGraphExec_t instantiate(cudaGraph_t graph);
    void launch(cudaGraphExec_t exec, cudaStream_t stream);
    void destroy(cudaGraph_t graph);
    void destroy(cudaGraphExec_t exec);
    void refuse_in_capture(const char* what);

    // Waiting. Queries also make lazy streams go on, one piece of work at a time, as a device would meanwhile.
    void synchronize(cudaStream_t stream);
    void synchronize(cudaEvent_t event);
    void synchronize_device(int device);
    bool query(cudaStream_t stream);
    bool query(cudaEvent_t event);
    /// Milliseconds; empty unless both were recorded, completed and timed.
    std::optional<float> elapsed(cudaEvent_t start, cudaEvent_t end);

    // Errors and limits.
    std::optional<Fault> sticky(int device);
    void make_sticky(int device, const Fault& fault);
    void reset(int device);
    void allow_shared(int device, const void* kernel, std::size_t bytes);
    std::size_t shared_allowed(int device, const void* kernel);

  private:
    struct Device;
    struct Graph;
    struct GraphExec;
    using Lock = std::unique_lock<std::mutex>;

    Machine() = default;
    Device& device(int index);
    std::shared_ptr<Stream> find(cudaStream_t stream);
    std::shared_ptr<Event> find(cudaEvent_t event);
    GraphExec& find(cudaGraphExec_t exec);
    void refuse_captured(const Stream& stream, const char* what);
    bool captured_work(Stream& stream, const std::string& what, std::function<bool()>& poll);
    bool captured_record(Event& event, Stream& stream);
    bool captured_wait(const std::shared_ptr<Stream>& stream, const Event& event);
    std::size_t take_slot();
    void retire(Stream& stream);
    void enqueue(Stream& stream, Task task);
    void drain(Lock& lock, Stream& stream, std::uint64_t until);
    void want(Stream& stream, std::uint64_t until);

    // The executor of a device (executor.cpp).
    enum class Step { kNothing, kPolled, kMoved };
    void run_device(Device& device);
    Step step(Lock& lock, Device& device);
    Step run_front(Lock& lock, Device& device, Stream& stream);
    void finish_front(Device& device, Stream& stream);
    void rest(Lock& lock, Device& device, Step last);
    void fault(Device& device, const Fault& fault);

    std::mutex mutex_;
    std::vector<std::unique_ptr<Device>> devices_;
    std::map<cudaStream_t, std::shared_ptr<Stream>> streams_;
    std::map<cudaEvent_t, std::shared_ptr<Event>> events_;
    std::vector<std::shared_ptr<Capture>> captures_;  // under way
    std::map<cudaGraph_t, std::shared_ptr<Graph>> graphs_;
    std::map<cudaGraphExec_t, std::shared_ptr<GraphExec>> execs_;
    VectorClock host_;
    // Slots of streams that are gone, with the number of their last work. One is used again when the host is known to
    // come after that work: until then it must not be taken for another stream's.
    std::vector<std::pair<std::size_t, std::uint64_t>> retired_;
    std::size_t slots_ = 0;
    std::deque<std::shared_ptr<void>> graveyard_;  // keeps the addresses of recent dead handles from being used again
};

}  // namespace lockstep::emulation

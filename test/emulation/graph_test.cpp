// Streams that are captured, and graphs: what a launch computes, and what the real runtime would refuse or get wrong.
#include <catch2/catch.hpp>

#include <numeric>
#include <thread>

#include "test/emulation/emulated_device.hpp"
#include "test/emulation/planted_kernels.h"

using namespace lockstep;
using namespace lockstep::emulation;
using Catch::Contains;

namespace {

constexpr std::size_t kN = 1003;

void begin(cudaStream_t stream) {
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

/// An executable graph of what was captured on `stream`.
class GraphOwner {
  public:
    explicit GraphOwner(cudaStream_t stream) {
        cudaGraph_t graph = nullptr;
        CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
        CUDA_CHECK(cudaGraphInstantiate(&exec_, graph, 0));
        CUDA_CHECK(cudaGraphDestroy(graph));
    }
    ~GraphOwner() { cudaGraphExecDestroy(exec_); }
    GraphOwner(const GraphOwner&) = delete;
    GraphOwner& operator=(const GraphOwner&) = delete;
    void launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(exec_, stream)); }

  private:
    cudaGraphExec_t exec_ = nullptr;
};

/// x = 2 x, then y = 3 x on a second stream, which is drawn in, then x = 5 y on the first one again; the orders between
/// may be missing.
struct TwoBranches {
    DeviceArray<float> x{kN}, y{kN};
    StreamOwner first, second;
    EventOwner fork, middle, join;

    TwoBranches() { upload(x.get(), std::vector<float>(kN, 1.0F), first); }
    void queue(bool ordered = true, bool joined = true) {
        if (!ordered) order(fork, first, second);
        planted::scale(x.get(), x.get(), kN, 2.0F, first);
        if (ordered) order(middle, first, second);
        planted::scale(y.get(), x.get(), kN, 3.0F, second);
        if (joined) order(join, second, first);
        planted::scale(x.get(), y.get(), kN, 5.0F, first);
    }
    static void order(cudaEvent_t event, cudaStream_t before, cudaStream_t after) {
        CUDA_CHECK(cudaEventRecord(event, before));
        CUDA_CHECK(cudaStreamWaitEvent(after, event, 0));
    }
    float result() const {
        const std::vector<float> values = download(x.get(), kN, first);
        for (const float v : values) REQUIRE(v == values.front());
        return values.front();
    }
};

}  // namespace

TEST_CASE("a graph does at every launch what was captured, and nothing while it is captured") {
    for (const Order order : {Order::kLazy, Order::kEager, Order::kRandom}) {
        const FreshDevice device;
        settings().order = order;
        TwoBranches work;
        begin(work.first);
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        CUDA_CHECK(cudaStreamIsCapturing(work.first, &status));
        REQUIRE(status == cudaStreamCaptureStatusActive);
        work.queue();
        const GraphOwner graph(work.first);
        CUDA_CHECK(cudaStreamIsCapturing(work.second, &status));
        REQUIRE(status == cudaStreamCaptureStatusNone);
        REQUIRE(work.result() == 1.0F);
        float expected = 1.0F;
        for (int launch = 0; launch < 4; ++launch) {
            graph.launch(work.first);
            expected *= 30.0F;
            if (launch % 2 == 1) REQUIRE(work.result() == expected);
        }
        work.queue();  // the streams work as before
        REQUIRE(work.result() == 30.0F * expected);
    }
}

TEST_CASE("a thread that captures may not wait, ask or allocate; another one may") {
    const auto captured = [](auto&& call) {
        const FreshDevice device;
        TwoBranches work;
        begin(work.first);
        call(work);
    };
    void* memory = nullptr;
    const auto refused = Contains("cudaErrorStreamCaptureUnsupported");
    captured([&](auto& w) { CHECK_THROWS_WITH(CUDA_CHECK(cudaStreamSynchronize(w.first)), refused); });
    captured([&](auto& w) { CHECK_THROWS_WITH(CUDA_CHECK(cudaStreamSynchronize(w.second)), refused); });
    captured([&](auto&) { CHECK_THROWS_WITH(CUDA_CHECK(cudaDeviceSynchronize()), refused); });
    captured([&](auto& w) { CHECK_THROWS_WITH(CUDA_CHECK(cudaEventSynchronize(w.fork)), refused); });
    captured([&](auto& w) { CHECK_THROWS_WITH(CUDA_CHECK(cudaStreamQuery(w.first)), refused); });
    captured([&](auto& w) { CHECK_THROWS_WITH(CUDA_CHECK(cudaEventQuery(w.fork)), refused); });
    captured([&](auto&) { CHECK_THROWS_WITH(CUDA_CHECK(cudaMalloc(&memory, 16)), refused); });
    captured([&](auto& w) { CHECK_THROWS_WITH(CUDA_CHECK(cudaFree(w.y.get())), refused); });
    captured([&](auto&) { CHECK_THROWS_WITH(CUDA_CHECK(cudaMallocHost(&memory, 16)), refused); });
    captured([&](auto& w) {
        std::thread([&] { CHECK(cudaMalloc(&memory, 16) == cudaSuccess); }).join();
        std::thread([&] { CHECK(cudaFree(memory) == cudaSuccess); }).join();
        w.queue();
        const GraphOwner graph(w.first);
        graph.launch(w.first);
        CHECK(w.result() == 30.0F);
    });
    captured([&](auto& w) {
        std::thread([&] { CHECK_THROWS_WITH(CUDA_CHECK(cudaStreamSynchronize(w.first)), refused); }).join();
    });
}

TEST_CASE("a branch that is not joined is found where the capture ends") {
    const FreshDevice device;
    TwoBranches work;
    cudaGraph_t graph = nullptr;
    begin(work.first);
    work.queue(true, false);
    CHECK_THROWS_WITH(CUDA_CHECK(cudaStreamEndCapture(work.first, &graph)), Contains("cudaErrorStreamCaptureUnjoined"));
}

TEST_CASE("branches of a graph that nothing orders are found at its launch") {
    const FreshDevice device;
    TwoBranches work;
    begin(work.first);
    work.queue(false);
    const GraphOwner graph(work.first);
    CHECK_THROWS_WITH(graph.launch(work.first), Contains("race") || Contains("order"));
}

TEST_CASE("a graph and work of another stream need an order between them") {
    for (const bool ordered : {true, false}) {
        const FreshDevice device;
        TwoBranches work;
        const StreamOwner other;
        const EventOwner done;
        begin(work.first);
        work.queue();
        const GraphOwner graph(work.first);
        graph.launch(work.first);
        if (ordered) TwoBranches::order(done, work.first, other);
        const auto use = [&] { planted::scale(work.y.get(), work.x.get(), kN, 1.0F, other); };
        if (ordered) {
            use();
            CHECK(download(work.y.get(), kN, other).front() == 30.0F);
        } else {
            CHECK_THROWS(use());
        }
    }
}

TEST_CASE("a capture that waits for what came before it is refused, and so is a wait for it from outside afterwards") {
    {
        const FreshDevice device;
        TwoBranches work;
        CUDA_CHECK(cudaEventRecord(work.fork, work.second));
        begin(work.first);
        CHECK_THROWS_WITH(CUDA_CHECK(cudaStreamWaitEvent(work.first, work.fork, 0)),
                          Contains("cudaErrorStreamCaptureIsolation"));
    }
    {
        const FreshDevice device;
        TwoBranches work;
        begin(work.first);
        work.queue();
        const GraphOwner graph(work.first);
        CHECK_THROWS_WITH(CUDA_CHECK(cudaStreamWaitEvent(work.second, work.join, 0)),
                          Contains("cudaErrorInvalidValue"));
    }
}

TEST_CASE("a graph that is launched after memory of it was freed is found") {
    const FreshDevice device;
    const StreamOwner stream;
    DeviceArray<float> x(kN);
    upload(x.get(), std::vector<float>(kN, 1.0F), stream);
    begin(stream);
    planted::scale(x.get(), x.get(), kN, 2.0F, stream);
    const GraphOwner graph(stream);
    CUDA_CHECK(cudaFree(x.get()));
    x.forget();
    CHECK_THROWS([&] {
        graph.launch(stream);
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }());
}

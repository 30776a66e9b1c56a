#include "cuda/backend/step_graphs.hpp"

#include <algorithm>

#include "cuda/access.h"
#include "cuda/backend/nvtx_range.hpp"

namespace lockstep {
namespace {

struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

}  // namespace

void CudaStepGraphs::run(std::span<const uint64_t> key, FunctionRef<void()> work) {
    if (memory_changes_ != context_.memory_changes()) {
        forget();
        memory_changes_ = context_.memory_changes();
    }
    Entry* const entry = find(key);
    if (entry == nullptr) {
        work();
        ++counts_.queued;
        add(key);
        return;
    }
    if (entry->graph == nullptr) {
        entry->graph = capture(work);
        ++counts_.captured;
    }
    const NvtxRange range("step graph");
    CUDA_CHECK(cudaGraphLaunch(entry->graph.get(), context_.main().get()));
    ++counts_.launched;
}

CudaStepGraphs::Entry* CudaStepGraphs::find(std::span<const uint64_t> key) {
    for (Entry& entry : entries_) {
        if (!std::equal(key.begin(), key.end(), entry.key.begin(), entry.key.end())) continue;
        entry.last_use = ++uses_;
        return &entry;
    }
    return nullptr;
}

/// In place of the one that was not used for longest, where there are many.
void CudaStepGraphs::add(std::span<const uint64_t> key) {
    if (entries_.size() == kMost) {
        const auto older = [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; };
        const auto oldest = std::min_element(entries_.begin(), entries_.end(), older);
        if (oldest->graph != nullptr) CUDA_CHECK(cudaStreamSynchronize(context_.main().get()));  // it may be under way
        entries_.erase(oldest);
    }
    entries_.push_back({{key.begin(), key.end()}, nullptr, ++uses_});
}

CudaStepGraphs::Executable CudaStepGraphs::capture(FunctionRef<void()> work) const {
    const NvtxRange range("capture");
    const cudaStream_t main = context_.main().get();
    // Other threads of the rank go on with whatever they do.
    CUDA_CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t captured = nullptr;
    try {
        work();
    } catch (...) {
        cudaStreamEndCapture(main, &captured);
        const Graph dropped(captured);
        cudaGetLastError();  // the first error is the one to report
        throw;
    }
    CUDA_CHECK(cudaStreamEndCapture(main, &captured));
    const Graph graph(captured);
    cudaGraphExec_t executable = nullptr;
    CUDA_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
    return Executable(executable);
}

void CudaStepGraphs::forget() {
    const bool under_way =
        std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.graph != nullptr; });
    if (under_way) cudaStreamSynchronize(context_.main().get());  // a fault is told by the next call of the run
    entries_.clear();
}

}  // namespace lockstep

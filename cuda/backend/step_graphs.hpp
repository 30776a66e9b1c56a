// CUDA graphs of a training step's work. A key is met three times before it pays: the first time the work is queued
// call by call (so that whatever it makes when first used exists), the second time it is captured; from then on it is
// one launch. Graphs name memory by address: any allocation or release on the device makes all of them be captured
// anew.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/step_graphs.hpp"
#include "cuda/backend/cuda_context.hpp"

namespace lockstep {

class CudaStepGraphs final : public StepGraphs {
  public:
    /// The context must outlive it.
    explicit CudaStepGraphs(CudaContext& context) : context_(context) {}
    ~CudaStepGraphs() override { forget(); }
    CudaStepGraphs(const CudaStepGraphs&) = delete;
    CudaStepGraphs& operator=(const CudaStepGraphs&) = delete;

    void run(std::span<const uint64_t> key, FunctionRef<void()> work) override;

    struct Counts {
        int64_t queued = 0, captured = 0, launched = 0;  // captured ones are launched, too
    };
    const Counts& counts() const { return counts_; }

    /// The inputs of a run alternate between two places, and the sizes of its batches are few.
    static constexpr std::size_t kMost = 32;

  private:
    struct Destroy {
        void operator()(cudaGraphExec_t exec) const { cudaGraphExecDestroy(exec); }
    };
    using Executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;
    struct Entry {
        std::vector<uint64_t> key;
        Executable graph;  // empty until it is captured
        int64_t last_use = 0;
    };

    Entry* find(std::span<const uint64_t> key);
    void add(std::span<const uint64_t> key);
    Executable capture(FunctionRef<void()> work) const;
    void forget();

    CudaContext& context_;
    std::vector<Entry> entries_;
    uint64_t memory_changes_ = 0;  // of the context, when the entries were made
    int64_t uses_ = 0;
    Counts counts_;
};

/// For a backend of make_cuda_backend, which must outlive it.
std::unique_ptr<CudaStepGraphs> make_cuda_step_graphs(Backend& backend);

}  // namespace lockstep

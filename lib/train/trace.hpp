// check.trace = "hash": the watcher that writes trace.jsonl, from which `diff` tells at which step, at which stage and
// in which tensor two runs part. It reads and never changes what it sees; without it a step does nothing more.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "io/files.hpp"
#include "train/step_watcher.hpp"
#include "train/tensor_hash.hpp"
#include "train/trace_line.hpp"

namespace lockstep {

/// What the trace of a run needs to know about it.
struct TraceFacts {
    int shards = 1;
    int64_t sample_elements = 0;
    std::string data;  // fingerprint of the training data
};

class Trace final : public StepWatcher {
  public:
    /// Everything must outlive it.
    Trace(Communicator& comm, Backend& backend, const ParameterTable& parameters, TraceFacts facts);

    /// Before the step after `step`, with the weights as they are then. Rank 0 goes on with `file` where the run does,
    /// cut back to that step, else it begins a new one; "" = in memory. Collective.
    void open(const std::string& file, int64_t step, bool goes_on, const float* weights);

    void step_begins() override;
    void batch_read(const Batch& batch) override;
    void partials_final(int64_t first, int64_t end, std::span<float* const> partial) override;
    void reduced(const Batch& batch, const float* total) override;
    void updated(const StepOutcome& outcome, float* weights) override;

    const std::string& text() const { return text_; }  // in memory only, rank 0

  private:
    std::vector<std::vector<uint64_t>> exchange() const;
    std::vector<TraceApart> ranks_apart(const std::vector<std::vector<uint64_t>>& all) const;
    std::vector<TraceNode> own_nodes(const std::vector<std::vector<uint64_t>>& all) const;
    void append(const std::string& line);

    Communicator& comm_;
    const ParameterTable& parameters_;
    TraceFacts facts_;
    ShardRange local_;
    TensorHasher hasher_;
    HostView view_;
    // Of this rank's step:
    uint64_t indices_ = 0;
    uint64_t data_ = 0;
    std::vector<uint64_t> gradient_, weights_;  // of each tensor; no gradient yet: zeros
    std::vector<TraceNode> own_;
    int64_t global_size_ = 0;
    std::unique_ptr<LineFile> file_;  // of rank 0
    std::string text_;
};

}  // namespace lockstep

// The time line of a run as a Chrome trace, for Perfetto (ui.perfetto.dev) or chrome://tracing: one process for each
// rank, a span for each stage of each step. It watches, and changes no number. Between gatherings, every 1,024 steps, a
// rank keeps its spans in memory reserved at the start; rank 0 writes them on to a file that gets its name at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "train/step_watcher.hpp"

namespace lockstep {

enum class Stage : int64_t {
    kStep,  // holds the next five
    kInput,
    kForward,
    kBackward,
    kReduce,  // what is left of it once backward is done
    kOptimizer,
    kEvaluate,
    kCheckpoint,
    kReplicaCheck,
    kGather,  // of these spans
};

class Timeline final : public StepWatcher {
  public:
    /// Throws SharedError(kRuntime) where rank 0 cannot write `path` (rank 0's word holds). Collective.
    /// `device`: what the stages run on, where it may be at work after a call has returned.
    Timeline(Communicator& comm, const std::string& path, Backend* device = nullptr);
    /// Not closed (this rank failed by itself): rank 0 writes what it has.
    ~Timeline() override;
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    /// Now, on rank 0's clock, since the time line began.
    int64_t now() const;
    void add(Stage stage, int64_t step, int64_t begin, int64_t end);
    /// Gathers the last spans and gives the file its name. Throws SharedError(kRuntime) where it could not be written,
    /// now or before. Collective.
    void close();
    /// The same after an error that ended all ranks alike, as far as possible: it throws nothing, and after a run-time
    /// failure, when some rank may not answer, rank 0 writes what it has.
    void close_after(ErrorKind kind) noexcept;

    void step_begins() override;
    void batch_read(const Batch& batch) override;
    void forward_done() override;
    void partials_final(int64_t first, int64_t end, std::span<float* const> partial) override;
    void reduced(const Batch& batch, const float* total) override;
    void updated(const StepOutcome& outcome, float* weights) override;

  private:
    struct Span {
        Stage stage;
        int64_t step;
        int64_t begin, end;  // ns
    };

    void end_stage(Stage stage);
    void gather();
    void write_spans(int rank, std::span<const Span> spans);
    void write_text();
    void finish_file();

    Communicator& comm_;
    Backend* device_;
    int64_t shift_ns_ = 0;  // from this rank's clock to the time line's
    std::vector<Span> spans_;
    std::size_t open_step_ = 0;  // of spans_: the step under way
    int64_t step_ = 0;
    int64_t stage_begin_ = 0;
    bool closed_ = false;
    // Of rank 0:
    std::optional<AtomicFile> file_;
    std::string failure_;  // why there is no file any more
    std::string text_;     // not yet written
    std::vector<Span> arrived_;
};

/// The time until the end of a scope. `timeline` may be null.
class TimelineMark {
  public:
    TimelineMark(Timeline* timeline, Stage stage, int64_t step)
        : timeline_(timeline), stage_(stage), step_(step), begin_(timeline != nullptr ? timeline->now() : 0) {}
    ~TimelineMark() {
        if (timeline_ != nullptr) timeline_->add(stage_, step_, begin_, timeline_->now());
    }
    TimelineMark(const TimelineMark&) = delete;
    TimelineMark& operator=(const TimelineMark&) = delete;

  private:
    Timeline* timeline_;
    Stage stage_;
    int64_t step_;
    int64_t begin_;
};

}  // namespace lockstep

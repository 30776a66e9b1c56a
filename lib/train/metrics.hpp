// The lines of metrics.jsonl: a function of config and data, but for what stands under "wall". And where they go: the
// file of the run directory, or memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/files.hpp"

namespace lockstep {

struct StepRecord {
    int64_t step = 0;     // updates done, from 1
    int64_t epoch = 0;    // 0-based, of this update
    int64_t samples = 0;  // used since the first step of the run
    float loss = 0;       // mean over the global batch, before the update
    float lr = 0;
    std::optional<float> grad_norm;
    double time_s = 0;  // wall
    double samples_per_s = 0;
    std::optional<float> loss_scale = {};  // with fp16
    bool skipped = false;                  // then: its gradients overflowed, no weight was changed
};

struct EvalResult {
    std::string split = "test";
    int64_t step = 0;
    int64_t epoch = 0;  // whole epochs completed
    int64_t count = 0;
    double loss = 0;
    double accuracy = 0;         // of classes
    std::optional<double> mse;   // of a regression, which has nothing else
    std::optional<double> top5;  // more than 5 classes
    std::optional<double> auc;   // two classes
    // Two classes: of samples predicted 1 the share that are, of samples that are 1 the share so predicted. NaN of
    // none.
    std::optional<double> precision, recall;
    std::vector<int64_t> confusion = {};  // [label][predicted], where it was asked for
};

/// A metric by name, as plateau, early stopping and the best checkpoint know it: nothing where the evaluation has none.
std::optional<double> metric_of(const EvalResult& result, std::string_view name);
/// Whether more of it is better: of all but the loss.
bool higher_is_better(std::string_view name);
/// The metrics that evaluations with so many classes have.
std::vector<std::string_view> metrics_of(int classes);

struct EndRecord {
    int64_t steps = 0;
    int64_t epochs = 0;
    bool early = false;   // by train.stop_metric: "early":true then
    std::string weights;  // 16 hex digits
    std::string sha256;   // of model.safetensors
    double time_s = 0;    // wall
    double samples_per_s = 0;
};

std::string step_line(const StepRecord& record);
std::string eval_line(const EvalResult& result);
std::string end_line(const EndRecord& record);

/// One line of a step and whether it would have been written had the run gone on: a resumed run keeps only such lines.
struct MetricsLine {
    std::string text;
    bool due = true;
};

/// Lines in order, flushed one by one; and the position before the lines of the current step, for checkpoints.
class MetricsLog {
  public:
    /// In memory.
    MetricsLog() = default;
    /// In a file, of which the first `keep_bytes` stay.
    MetricsLog(const std::string& path, int64_t keep_bytes);

    void begin_step();  // the lines that follow belong to the next step
    void append(MetricsLine line);

    int64_t bytes_before_step() const { return before_step_; }
    const std::vector<MetricsLine>& step_lines() const { return step_lines_; }
    const std::string& text() const { return text_; }  // in memory only

  private:
    int64_t size() const;
    std::unique_ptr<LineFile> file_;
    std::string text_;
    int64_t before_step_ = 0;
    std::vector<MetricsLine> step_lines_;
};

}  // namespace lockstep

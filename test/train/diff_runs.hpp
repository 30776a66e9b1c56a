// Runs to compare: a folder of them, faults to plant in one, and what diff says of two.
#pragma once

#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/files.hpp"
#include "io/temp_folder.hpp"
#include "train/run_diff.hpp"
#include "train/traced.hpp"

namespace lockstep::test {

namespace fs = std::filesystem;

/// Flips one bit of one number at one stage of one step: of weights the lowest, elsewhere one that a sum does not lose.
class Flip final : public StepWatcher {
  public:
    enum class Where { kPixel, kOwnLoss, kOwnSum, kTotal, kWeight };
    Flip(Where where, int64_t step, int64_t element) : where_(where), step_(step), element_(element) {}

    void batch_read(const Batch& batch) override {
        now_ = batch.at.update == step_;
        if (now_ && where_ == Where::kPixel && batch.rows > 0) flip(const_cast<float*>(batch.pixels), element_);
    }
    void partials_final(int64_t first, int64_t end, std::span<float* const> partial) override {
        if (!now_ || partial.empty()) return;
        if (where_ == Where::kOwnLoss && first == 0) flip(partial[0], kLeadLoss);
        if (where_ == Where::kOwnSum && first <= element_ && element_ < end) flip(partial[0], kLead + element_);
    }
    void reduced(const Batch&, const float* total) override {
        if (now_ && where_ == Where::kTotal) flip(const_cast<float*>(total), kLead + element_);
    }
    void updated(const StepOutcome&, float* weights) override {
        if (now_ && where_ == Where::kWeight) flip(weights, element_);
    }

  private:
    // At the first element from there on that is not 0: a gradient is, where a unit is dead.
    void flip(float* values, int64_t at) const {
        while (values[at] == 0) ++at;
        const uint32_t bit = where_ == Where::kWeight ? 1U : 1U << 12;
        values[at] = std::bit_cast<float>(std::bit_cast<uint32_t>(values[at]) ^ bit);
    }
    Where where_;
    int64_t step_, element_;
    bool now_ = false;
};

inline std::string text_at(const std::string& path) {
    return text_of(read_file(path));
}
inline void rewrite(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}
inline std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

/// A folder with one run that all others are compared with.
class Runs {
  public:
    explicit Runs(Job job = job_of_traces()) : job_(std::move(job)) { train("base", {}); }
    std::string operator/(const std::string& name) const { return folder_ / name; }
    /// A run that ends because its ranks differ has left its trace.
    void train(const std::string& name, TracedRun run) {
        run.out = folder_ / name;
        try {
            train_traced(job_, run);
        } catch (const Error& e) {
            if (e.kind() != ErrorKind::kMismatch) throw;
        }
    }
    RunDiff diff(const std::string& name) const { return diff_runs(folder_ / "base", folder_ / name); }
    RunDiff diff_of(TracedRun run) {
        const std::string name = "run" + std::to_string(++number_);
        train(name, std::move(run));
        return diff(name);
    }
    /// Run `name` as if it had been traced from after `step` on, and, `begun` there, had no earlier lines nor a
    /// checkpoint in common with any.
    void begin_late(const std::string& name, const std::string& copy, int64_t step, bool begun) const {
        fs::copy(folder_ / name, folder_ / copy, fs::copy_options::recursive);
        std::vector<std::string> lines = lines_of(text_at(folder_ / (name + "/trace.jsonl")));
        TraceStart start = parse_trace_start(lines.front(), "");
        start.step = step;
        start.weights = parse_trace_step(lines[static_cast<std::size_t>(step)], "").weights;
        lines.erase(lines.begin(), lines.begin() + step);
        lines.front() = trace_line(start);
        rewrite(folder_ / (copy + "/trace.jsonl"), joined(lines));
        if (!begun) return;
        fs::remove_all(folder_ / (copy + "/checkpoints"));
        lines = lines_of(text_at(folder_ / (name + "/metrics.jsonl")));
        std::erase_if(lines, [](const std::string& line) { return line.find("\"end\"") == std::string::npos; });
        rewrite(folder_ / (copy + "/metrics.jsonl"), joined(lines));
    }
    const Job& job() const { return job_; }

  private:
    TempFolder folder_;
    Job job_;
    int number_ = 0;
};

inline std::string first_line(const RunDiff& diff) {
    const std::string text = diff_text(diff);
    return text.substr(0, text.find('\n'));
}

inline std::string keys(const RunDiff& diff) {
    std::string names;
    for (const KeyDifference& key : diff.keys) names += (names.empty() ? "" : " ") + key.key;
    return names;
}

inline bool says(const RunDiff& diff, const std::string& text) {
    return diff_text(diff).find(text) != std::string::npos;
}

inline TracedRun changed(std::function<void(Config&)> change, int world = 1) {
    return {.cast = {world}, .change = std::move(change)};
}

/// On rank `rank`, or on all for -1.
inline TracedRun flipped(Flip::Where where, int64_t element, int world, int rank) {
    return {.cast = {world}, .plant = [=](int here) -> std::unique_ptr<StepWatcher> {
                if (rank >= 0 && here != rank) return nullptr;
                return std::make_unique<Flip>(where, 4, element);
            }};
}

}  // namespace lockstep::test

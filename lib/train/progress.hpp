// What a person sees of a run: plain lines, or one line that is redrawn on a real terminal. Rank 0 alone.
#pragma once

#include <cstdint>
#include <string>

#include "train/metrics.hpp"

namespace lockstep {

enum class ProgressStyle { kNone, kPlain, kBar };

struct ProgressOptions {
    ProgressStyle style = ProgressStyle::kPlain;
    int fd = 2;        // where it is written: 2, or 1 for a bar under mpirun
    int columns = 80;  // of the terminal, for the bar
    bool color = false;
};

/// `auto`: the bar where there is a terminal to redraw on. Under mpirun stderr is always a pipe and every rank's stdout
/// looks like a terminal, so there stdout decides.
ProgressOptions choose_progress(const std::string& wanted, bool under_mpirun, bool color);

struct ProgressFacts {
    int64_t epoch = 1, epochs = 1;  // counted from 1
    int64_t step = 0, steps = 0;
    float loss = 0, lr = 0;
    double samples_per_s = 0;
    double comm_share = 0;  // of the time, waiting for other ranks
    double eta_s = 0;
};
/// `epoch 2/10  step 470/4690  loss 0.4123  lr 0.05  112,000 samples/s  comm 4%  eta 0:41`
std::string progress_text(const ProgressFacts& facts);
std::string eval_text(const EvalResult& result);

class Progress {
  public:
    explicit Progress(const ProgressOptions& options) : options_(options) {}
    ~Progress() { close(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void show(const ProgressFacts& facts);
    void line(const std::string& text);  // stays: above the bar
    void close();                        // ends the bar's line

  private:
    void write(const std::string& text) const;
    ProgressOptions options_;
    bool drawn_ = false;
};

}  // namespace lockstep

// Learning rates as functions of the update number u (1-based) alone, computed in fp64 by our own functions and rounded
// once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct ScheduleSpec {
    std::string name = "constant";  // constant | step | cosine | linear
    double lr = 0.05;
    double warmup_epochs = 0, every_epochs = 10, factor = 0.1, end = 0;
    // The run, for epoch time: x(u) = e + (samples of epoch e used before u) / (samples that an epoch uses).
    int64_t batch = 128;
    int64_t samples_per_epoch = 0;
    int64_t steps_per_epoch = 0;
    int64_t total_steps = 0;
};

class Schedule {
  public:
    explicit Schedule(const ScheduleSpec& spec);
    /// lr(u), u >= 1. Warm-up: lr u/U for u <= U = floor(warmup_epochs * steps per epoch + 0.5), in place of the
    /// schedule.
    float lr(int64_t update) const;
    double lr_double(int64_t update) const;  // before the rounding
    double epoch_time(int64_t update) const;
    int64_t warmup_updates() const;
    /// cosine, linear: the total number of steps decides every rate, so that a resume may not extend the run.
    bool knows_its_end() const;
    /// constant, step: after the warm-up the rate stays what it is, or falls from one value to the next.
    bool piecewise_constant() const;

  private:
    ScheduleSpec spec_;
    int64_t warmup_updates_ = 0;
    double warmup_end_ = 0, end_time_ = 0;
};

}  // namespace lockstep

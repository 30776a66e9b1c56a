// Learning rates as functions of the update number u (1-based) alone, computed in fp64 by our own functions and rounded
// once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct ScheduleSpec {
    std::string name = "constant";  // constant | step | piecewise | exponential | cosine | linear | poly | plateau
    double lr = 0.05;
    double warmup_epochs = 0, every_epochs = 10, factor = 0.1, end = 0, power = 1, rate = 0.96, min_lr = 0;
    bool staircase = false;
    std::vector<double> boundaries, values;  // piecewise
    // The run, for epoch time: x(u) = e + (samples of epoch e used before u) / (samples that an epoch uses).
    int64_t batch = 128;
    int64_t samples_per_epoch = 0;
    int64_t steps_per_epoch = 0;
    int64_t total_steps = 0;
};

class Schedule {
  public:
    /// Throws kUsage for an unknown name, boundaries and values that do not go together, and rates that fp32 cannot
    /// hold.
    explicit Schedule(const ScheduleSpec& spec);
    /// lr(u), u >= 1. Warm-up: lr u/U for u <= U = floor(warmup_epochs * steps per epoch + 0.5), in place of the
    /// schedule.
    float lr(int64_t update) const;
    double lr_double(int64_t update) const;  // before the rounding
    double epoch_time(int64_t update) const;
    int64_t warmup_updates() const;
    /// plateau: how often the rate has fallen, by the evaluations so far. From the next update on.
    void set_drops(int64_t drops) { drops_ = drops; }
    /// cosine, linear, poly: the total number of steps decides every rate, so that a resume may not extend the run.
    bool knows_its_end() const;
    /// constant, step, piecewise, plateau, exponential as a staircase: behind the warm-up the rate stays what it is, or
    /// jumps from one value to the next.
    bool piecewise_constant() const;
    /// Then: how many jumps lie at or before an update behind the warm-up. (A jump may lead to the same value.)
    int64_t jumps(int64_t update) const;

  private:
    double plateau_rate() const;
    void check_rates() const;

    ScheduleSpec spec_;
    int64_t drops_ = 0;
    int64_t warmup_updates_ = 0;
    double warmup_end_ = 0, end_time_ = 0;
};

}  // namespace lockstep

#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/fixed_math.hpp"

namespace lockstep {
namespace {

constexpr double kPi = 3.141592653589793238463;

bool is_known(const std::string& name) {
    return name == "constant" || name == "step" || name == "cosine" || name == "linear";
}

}  // namespace

Schedule::Schedule(const ScheduleSpec& spec) : spec_(spec) {
    if (!is_known(spec_.name)) {
        fail(ErrorKind::kUsage, "schedule.name: \"{}\" is not one of constant, step, cosine, linear", spec_.name);
    }
    if (spec_.steps_per_epoch < 1 || spec_.samples_per_epoch < 1 || spec_.batch < 1) {
        fail(ErrorKind::kUsage, "schedule: an epoch of {} steps and {} samples in batches of {} has no epoch time",
             spec_.steps_per_epoch, spec_.samples_per_epoch, spec_.batch);
    }
    // floor and the product are IEEE operations: the same U everywhere.
    warmup_updates_ =
        static_cast<int64_t>(std::floor(spec_.warmup_epochs * static_cast<double>(spec_.steps_per_epoch) + 0.5));
    warmup_end_ = epoch_time(warmup_updates_ + 1);
    end_time_ = epoch_time(spec_.total_steps + 1);
    // A factor above 1 makes the last rate the largest. An infinite one would leave weights that no later step refuses.
    if (spec_.total_steps > 0 && !(lr_double(spec_.total_steps) <= std::numeric_limits<float>::max())) {
        fail(ErrorKind::kUsage,
             "schedule.factor = {}: the learning rate of step {} would be {:g}, which fp32 cannot hold", spec_.factor,
             spec_.total_steps, lr_double(spec_.total_steps));
    }
}

float Schedule::lr(int64_t update) const {
    return static_cast<float>(lr_double(update));
}

double Schedule::lr_double(int64_t update) const {
    if (update <= warmup_updates_) {
        return spec_.lr * static_cast<double>(update) / static_cast<double>(warmup_updates_);
    }
    const double x = epoch_time(update);
    if (spec_.name == "step") {
        const double drops = std::floor(x / spec_.every_epochs);
        return spec_.lr * power_int_fixed(spec_.factor, static_cast<unsigned long long>(drops));
    }
    if (knows_its_end()) {
        // A run that ends within its warm-up never gets here; asked for updates behind its end, it stays there.
        const double length = end_time_ - warmup_end_;
        const double p = length > 0 ? std::clamp((x - warmup_end_) / length, 0.0, 1.0) : 1.0;
        const double rest = spec_.name == "cosine" ? (1.0 + cos_fixed(kPi * p)) / 2.0 : 1.0 - p;
        return spec_.end + (spec_.lr - spec_.end) * rest;
    }
    return spec_.lr;
}

double Schedule::epoch_time(int64_t update) const {
    const int64_t epoch = (update - 1) / spec_.steps_per_epoch;
    const int64_t used = (update - 1) % spec_.steps_per_epoch * spec_.batch;
    return static_cast<double>(epoch) + static_cast<double>(used) / static_cast<double>(spec_.samples_per_epoch);
}

int64_t Schedule::warmup_updates() const {
    return warmup_updates_;
}

bool Schedule::piecewise_constant() const {
    return !knows_its_end();
}

bool Schedule::knows_its_end() const {
    return spec_.name == "cosine" || spec_.name == "linear";
}

}  // namespace lockstep

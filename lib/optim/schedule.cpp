#include "optim/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/fixed_math.hpp"

namespace lockstep {
namespace {

constexpr double kPi = 3.141592653589793238463;
constexpr std::array<const char*, 8> kNames{"constant", "step",   "piecewise", "exponential",
                                            "cosine",   "linear", "poly",      "plateau"};

double power_of(double x, int64_t n) {
    return power_int_fixed(x, static_cast<unsigned long long>(n));
}

/// (1 - p)^power for p in [0, 1]; whole powers by products, so that a power of 1 is linear's bits.
double falling_power(double p, double power) {
    constexpr double kProducts = 64;
    if (power == std::floor(power) && power <= kProducts) return power_of(1.0 - p, static_cast<int64_t>(power));
    return pow_fixed(1.0 - p, power);
}

void check_name(const std::string& name) {
    std::string known;
    for (const char* one : kNames) {
        if (name == one) return;
        known.append(known.empty() ? "" : ", ").append(one);
    }
    fail(ErrorKind::kUsage, "schedule.name: \"{}\" is not one of {}", name, known);
}

}  // namespace

Schedule::Schedule(const ScheduleSpec& spec) : spec_(spec) {
    check_name(spec_.name);
    if (spec_.steps_per_epoch < 1 || spec_.samples_per_epoch < 1 || spec_.batch < 1) {
        fail(ErrorKind::kUsage, "schedule: an epoch of {} steps and {} samples in batches of {} has no epoch time",
             spec_.steps_per_epoch, spec_.samples_per_epoch, spec_.batch);
    }
    if (spec_.name == "piecewise" && spec_.values.size() != spec_.boundaries.size() + 1) {
        fail(ErrorKind::kUsage, "schedule.values must have one more entry than schedule.boundaries, got {} and {}",
             spec_.values.size(), spec_.boundaries.size());
    }
    if (spec_.name == "piecewise" && !std::is_sorted(spec_.boundaries.begin(), spec_.boundaries.end())) {
        fail(ErrorKind::kUsage, "schedule.boundaries must ascend");
    }
    // floor and the product are IEEE operations: the same U everywhere.
    warmup_updates_ =
        static_cast<int64_t>(std::floor(spec_.warmup_epochs * static_cast<double>(spec_.steps_per_epoch) + 0.5));
    warmup_end_ = epoch_time(warmup_updates_ + 1);
    end_time_ = epoch_time(spec_.total_steps + 1);
    check_rates();
}

/// A factor above 1 makes the last rate the largest. An infinite one would leave weights that no later step refuses.
void Schedule::check_rates() const {
    if (spec_.name == "plateau" && spec_.factor > 1) {
        fail(ErrorKind::kUsage, "schedule.factor = {}: plateau lowers the rate, so the factor may be 1 at most",
             spec_.factor);
    }
    if (spec_.total_steps > 0 && !(lr_double(spec_.total_steps) <= std::numeric_limits<float>::max())) {
        fail(ErrorKind::kUsage, "schedule.{} = {}: the learning rate of step {} would be {:g}, which fp32 cannot hold",
             spec_.name == "exponential" ? "rate" : "factor", spec_.name == "exponential" ? spec_.rate : spec_.factor,
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
    if (spec_.name == "step") return spec_.lr * power_of(spec_.factor, jumps(update));
    if (spec_.name == "piecewise") return spec_.values[static_cast<std::size_t>(jumps(update))];
    if (spec_.name == "exponential") {
        return spec_.lr *
               (spec_.staircase ? power_of(spec_.rate, jumps(update)) : pow_fixed(spec_.rate, x / spec_.every_epochs));
    }
    if (spec_.name == "plateau") return plateau_rate();
    if (knows_its_end()) {
        // A run that ends within its warm-up never gets here; asked for updates behind its end, it stays there.
        const double length = end_time_ - warmup_end_;
        const double p = length > 0 ? std::clamp((x - warmup_end_) / length, 0.0, 1.0) : 1.0;
        const double rest = spec_.name == "cosine"   ? (1.0 + cos_fixed(kPi * p)) / 2.0
                            : spec_.name == "linear" ? 1.0 - p
                                                     : falling_power(p, spec_.power);
        return spec_.end + (spec_.lr - spec_.end) * rest;
    }
    return spec_.lr;
}

/// Never below min_lr, but for a rate that was so from the start.
double Schedule::plateau_rate() const {
    return std::max(spec_.lr * power_of(spec_.factor, drops_), std::min(spec_.min_lr, spec_.lr));
}

int64_t Schedule::jumps(int64_t update) const {
    const double x = epoch_time(update);
    if (spec_.name == "piecewise") {
        return std::upper_bound(spec_.boundaries.begin(), spec_.boundaries.end(), x) - spec_.boundaries.begin();
    }
    const bool stairs = spec_.name == "step" || (spec_.name == "exponential" && spec_.staircase);
    constexpr double kMost = 1e18;
    return stairs ? static_cast<int64_t>(std::min(std::floor(x / spec_.every_epochs), kMost)) : 0;
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
    return !knows_its_end() && (spec_.name != "exponential" || spec_.staircase);
}

bool Schedule::knows_its_end() const {
    return spec_.name == "cosine" || spec_.name == "linear" || spec_.name == "poly";
}

}  // namespace lockstep

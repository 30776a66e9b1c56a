// The optimizer in a line, and the learning rates worth telling of a run that may be millions of steps long: changes
// are found by bisection.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "io/json_number.hpp"
#include "train/forecast.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostRates = 100'000;  // of a run with more epochs or changes, not all are told

/// The first steps of new values in (first, last], behind the warm-up. Between two steps with as many jumps before them
/// there is none.
void add_changes(const Schedule& schedule, int64_t first, int64_t last, std::set<int64_t>& steps) {
    if (schedule.jumps(first) == schedule.jumps(last) || static_cast<int64_t>(steps.size()) > kMostRates) return;
    if (last - first == 1) {
        if (schedule.lr(first) != schedule.lr(last)) steps.insert(last);
        return;
    }
    const int64_t middle = first + (last - first) / 2;
    add_changes(schedule, first, middle, steps);
    add_changes(schedule, middle, last, steps);
}

void add_epochs(const RunPlan& plan, int64_t first, int64_t last, std::set<int64_t>& steps) {
    const int64_t stride = plan.epochs / kMostRates + 1;
    for (int64_t epoch = (first - 1) / plan.steps_per_epoch; epoch < plan.epochs; epoch += stride) {
        const int64_t step = epoch * plan.steps_per_epoch + 1;
        if (step >= first && step <= last) steps.insert(step);
    }
}

}  // namespace

std::vector<LearningRate> learning_rates(const Schedule& schedule, const RunPlan& plan,
                                         std::span<const int64_t> asked) {
    const int64_t last = plan.total_steps;
    const int64_t warm = std::min(schedule.warmup_updates(), last);
    std::set<int64_t> steps{1, last};
    if (warm > 0) {
        add_epochs(plan, 1, warm, steps);
        steps.insert(warm);
    }
    if (!schedule.piecewise_constant()) {
        add_epochs(plan, warm + 1, last, steps);
    } else if (warm < last) {
        if (warm > 0 && schedule.lr(warm) != schedule.lr(warm + 1)) steps.insert(warm + 1);
        add_changes(schedule, warm + 1, last, steps);
    }
    for (const int64_t step : asked) {
        if (step < 1 || step > last)
            fail(ErrorKind::kUsage, "--lr-at {}: the run has steps 1 to {}; ask for one of them", step, last);
        steps.insert(step);
    }
    std::vector<LearningRate> rates;
    for (const int64_t step : steps) rates.push_back({step, schedule.lr(step)});
    return rates;
}

std::string optimizer_text(const Config& config) {
    const Config::Optimizer& o = config.optimizer;
    std::string text = o.name;
    const auto tell = [&](const char* key, double value) { text += fmt::format(", {} {}", key, json_number(value)); };
    const auto is = [&](auto... names) { return ((o.name == names) || ...); };
    if (is("momentum", "nesterov", "lars")) tell("momentum", o.momentum);
    if (is("adam", "adamw", "lamb")) {
        tell("beta1", o.beta1);
        tell("beta2", o.beta2);
    }
    if (is("rmsprop")) {
        tell("rho", o.rho);
        if (o.rmsprop_momentum > 0) tell("momentum", o.rmsprop_momentum);
    }
    if (is("adagrad", "rmsprop") && o.initial > 0) tell("initial", o.initial);
    if (is("lars")) tell("trust", o.trust);
    if (!is("sgd", "momentum", "nesterov")) tell("epsilon", o.epsilon);
    if (is("adagrad", "rmsprop") && o.epsilon_inside) text += " inside the root";
    if (o.weight_decay > 0) tell("weight_decay", o.weight_decay);
    if (o.l2 > 0) tell("l2", o.l2);
    if ((o.weight_decay > 0 || o.l2 > 0) && o.decay != "all") text += fmt::format(" of {} alone", o.decay);
    if (o.clip_norm > 0) tell("clip_norm", o.clip_norm);
    if (config.reduce.op == "sum") text += ", of the sum over the batch (reduce.op)";
    return text;
}

std::string rates_note(const Config& config) {
    const Config::Schedule& schedule = config.schedule;
    if (schedule.name != "plateau") return "";
    return fmt::format("times {} after {} evaluation{} in a row without a better {}, not below {}",
                       json_number(schedule.factor), schedule.patience, schedule.patience == 1 ? "" : "s",
                       schedule.metric, json_number(schedule.min_lr));
}

}  // namespace lockstep

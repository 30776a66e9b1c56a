#include "train/history.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

void check_metric(const std::string& key, const std::string& metric, bool evaluates, int classes) {
    if (!evaluates) {
        fail(ErrorKind::kUsage, "{} = \"{}\": nothing is evaluated while training; set data.test or data.validation",
             key, metric);
    }
    const std::vector<std::string_view> known = metrics_of(classes);
    if (std::find(known.begin(), known.end(), metric) == known.end()) {
        fail(ErrorKind::kUsage, "{} = \"{}\": with {} classes there is no such metric; it can be {}", key, metric,
             classes, fmt::join(known, ", "));
    }
}

/// Plateau and early stopping go by the evaluations that are due, of which there must be some.
void check_watched(const Config& config, const std::string& key, const std::string& metric, bool evaluates,
                   int classes) {
    check_metric(key, metric, evaluates, classes);
    if (config.eval.every_epochs == 0 && config.eval.every_steps == 0) {
        fail(ErrorKind::kUsage, "{} = \"{}\": eval.every_epochs and eval.every_steps are 0; set one of them", key,
             metric);
    }
}

/// A share of nothing, not a loss or error that left the finite numbers: that one is no better.
bool is_undefined(const EvalResult& result, const std::string& metric) {
    return higher_is_better(metric) && !std::isfinite(metric_of(result, metric).value());
}

json improvement_json(const Improvement& improvement) {
    return {{"best", improvement.best}, {"step", improvement.best_step}, {"since", improvement.since}};
}

Improvement improvement_of(const json& from) {
    return {from.at("best"), from.at("step"), from.at("since")};
}

}  // namespace

json history_json(const HistoryState& history) {
    return {{"plateau", improvement_json(history.plateau)},
            {"stop", improvement_json(history.stop)},
            {"best", improvement_json(history.best)},
            {"drops", history.drops},
            {"stopped", history.stopped}};
}

HistoryState history_of(const json& from) {
    return {improvement_of(from.at("plateau")), improvement_of(from.at("stop")), improvement_of(from.at("best")),
            from.at("drops"), from.at("stopped")};
}

History::History(const Config& config, bool evaluates, int classes) : config_(config) {
    if (config.schedule.name == "plateau") {
        check_watched(config, "schedule.metric", config.schedule.metric, evaluates, classes);
    }
    if (!config.train.stop_metric.empty()) {
        check_watched(config, "train.stop_metric", config.train.stop_metric, evaluates, classes);
    }
    if (!config.checkpoint.best.empty()) {
        check_metric("checkpoint.best", config.checkpoint.best, evaluates, classes);
    }
}

void History::observe_due(const EvalResult& result) {
    const auto observe = [&](Improvement& improvement, const std::string& metric) {
        if (is_undefined(result, metric)) return;
        improvement.observe(metric_of(result, metric).value(), result.step, higher_is_better(metric));
    };
    if (config_.schedule.name == "plateau") {
        observe(state_.plateau, config_.schedule.metric);
        if (state_.plateau.since >= config_.schedule.patience) {
            ++state_.drops;
            state_.plateau.since = 0;
        }
    }
    if (!config_.train.stop_metric.empty()) {
        observe(state_.stop, config_.train.stop_metric);
        state_.stopped = state_.stop.since >= config_.train.stop_patience;
    }
}

std::vector<std::string> History::undefined(const EvalResult& result) const {
    std::vector<std::string> metrics;
    const auto look = [&](bool goes_by_it, const std::string& metric) {
        if (goes_by_it && is_undefined(result, metric) && std::count(metrics.begin(), metrics.end(), metric) == 0)
            metrics.push_back(metric);
    };
    look(config_.schedule.name == "plateau", config_.schedule.metric);
    look(!config_.train.stop_metric.empty(), config_.train.stop_metric);
    look(!config_.checkpoint.best.empty(), config_.checkpoint.best);
    return metrics;
}

bool History::observe_best(const EvalResult& result) {
    const std::string& metric = config_.checkpoint.best;
    return !metric.empty() &&
           state_.best.observe(metric_of(result, metric).value(), result.step, higher_is_better(metric));
}

}  // namespace lockstep

// The history of evaluations: what counts as better, what a plateau and an early end count, and which metrics there
// are.
#include "train/history.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"

using namespace lockstep;

namespace {

EvalResult evaluation(int64_t step, double loss, double accuracy = 0) {
    EvalResult result;
    result.step = step;
    result.loss = loss;
    result.accuracy = accuracy;
    return result;
}

Config plateau_config() {
    Config config;
    config.schedule.name = "plateau";
    config.schedule.patience = 2;
    return config;
}

}  // namespace

TEST_CASE("the rate falls after `patience` evaluations in a row that are not better, and the count begins anew") {
    const Config config = plateau_config();
    History history(config, true, 10);
    const std::vector<std::pair<double, int64_t>> losses_and_drops{{5, 0}, {5, 0}, {6, 1}, {5.5, 1}, {4, 1},
                                                                   {4, 1}, {3, 1}, {3, 1}, {7, 2},   {8, 2}};
    for (std::size_t i = 0; i < losses_and_drops.size(); ++i) {
        history.observe_due(evaluation(static_cast<int64_t>(i + 1), losses_and_drops[i].first));
        INFO("evaluation " << i);
        CHECK(history.state().drops == losses_and_drops[i].second);
    }
}

TEST_CASE("the loss should fall, every other metric rise; a NaN is never better") {
    Config config = plateau_config();
    config.schedule.metric = "accuracy";
    config.checkpoint.best = "loss";
    History history(config, true, 10);
    history.observe_due(evaluation(1, 1, 0.5));
    history.observe_due(evaluation(2, 2, 0.6));
    CHECK(history.state().plateau.best == 0.6);
    CHECK(history.state().plateau.since == 0);
    CHECK_FALSE(history.observe_best(evaluation(1, std::nan(""))));
    CHECK(history.observe_best(evaluation(2, 3)));
    CHECK_FALSE(history.observe_best(evaluation(3, 3)));
    CHECK(history.observe_best(evaluation(4, 2)));
    CHECK(history.state().best.best_step == 4);
}

TEST_CASE("a regression goes by its mean squared error, which should fall") {
    Config config = plateau_config();
    config.schedule.metric = config.checkpoint.best = config.train.stop_metric = "mse";
    CHECK_THROWS_AS(History(config, true, 10), Error);  // classes have none
    History history(config, true, 0);
    const auto observed = [](int64_t step, double mse) {
        EvalResult result = evaluation(step, 2 * mse);
        result.mse = mse;
        return result;
    };
    history.observe_due(observed(1, 0.5));
    history.observe_due(observed(2, 0.7));
    CHECK(history.state().plateau.best == 0.5);
    CHECK(history.state().plateau.since == 1);
    CHECK(history.state().stop.best_step == 1);
    CHECK(history.observe_best(observed(1, 0.5)));
    CHECK_FALSE(history.observe_best(observed(2, 0.7)));
    CHECK(history.observe_best(observed(3, 0.4)));
    CHECK(history.undefined(observed(4, std::nan(""))).empty());  // no better, as a loss that is no number
}

TEST_CASE("a metric that an evaluation does not define is not counted, and is named") {
    Config config = plateau_config();
    config.schedule.metric = "precision";
    config.train.stop_metric = "precision";
    config.train.stop_patience = 2;
    History history(config, true, 2);
    for (int64_t step = 1; step <= 5; ++step) {
        EvalResult nothing = evaluation(step, 1);
        nothing.precision = std::nan("");
        CHECK(history.undefined(nothing) == std::vector<std::string>{"precision"});
        history.observe_due(nothing);
    }
    CHECK(history.state() == HistoryState{});
    EvalResult defined = evaluation(6, std::nan(""));
    defined.precision = 0;
    CHECK(history.undefined(defined).empty());
    for (int i = 0; i < 3; ++i) history.observe_due(defined);
    CHECK(history.state().stopped);
    CHECK(history.state().drops == 1);
}

TEST_CASE("a metric that evaluations do not have, or evaluations that there are not, are refused by key") {
    const auto refused = [](const Config& config, bool evaluates, int classes, const std::string& words) {
        CHECK_THROWS_WITH(History(config, evaluates, classes), Catch::Contains(words));
    };
    Config config = plateau_config();
    refused(config, false, 10, "schedule.metric = \"loss\": nothing is evaluated while training");
    config.schedule.metric = "auc";
    refused(config, true, 10, "with 10 classes there is no such metric; it can be loss, accuracy, top5");
    CHECK_NOTHROW(History(config, true, 2));
    config.eval.every_epochs = 0;
    refused(config, true, 2, "eval.every_epochs and eval.every_steps are 0");
    Config stopping;
    stopping.train.stop_metric = "precision";
    refused(stopping, true, 3, "train.stop_metric = \"precision\"");
    Config best;
    best.checkpoint.best = "top5";
    refused(best, true, 3, "checkpoint.best = \"top5\"");
    best.eval.every_epochs = 0;  // the last evaluation is one
    CHECK_NOTHROW(History(best, true, 10));
}

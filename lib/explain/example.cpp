#include "explain/example.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "train/text_table.hpp"

namespace lockstep {
namespace {

constexpr std::array<double, kExampleSteps> kMeans{0.5, 4.5, 8.5, 12.5};
constexpr double kLambda = kExampleRate;

using Pair = std::array<double, 2>;  // A and B, or their gradients

Pair operator*(double c, Pair p) {
    return {c * p[0], c * p[1]};
}
Pair operator+(Pair p, Pair q) {
    return {p[0] + q[0], p[1] + q[1]};
}

double loss(double m, Pair w) {
    return m * w[0] * w[1] + kLambda * (w[0] * w[0] + w[1] * w[1]) / 2;
}
Pair gradient(double m, Pair w) {
    return {m * w[1] + kLambda * w[0], m * w[0] + kLambda * w[1]};
}

Pair clipped(Pair g, double limit) {
    const double norm = std::hypot(g[0], g[1]);
    return limit > 0 && norm > limit ? (limit / norm) * g : g;
}

/// An optimizer and its state, shared by all workers.
class ExampleUpdate {
  public:
    explicit ExampleUpdate(const Config::Optimizer& settings) : s_(settings) {
        if (s_.name == "rmsprop") second_ = {s_.initial, s_.initial};
    }

    void apply(Pair g, Pair& w) {
        ++count_;
        for (std::size_t i = 0; i < 2; ++i) w[i] -= step(g[i], first_[i], second_[i]);
    }

  private:
    double step(double g, double& first, double& second) const {
        if (s_.name == "sgd") return s_.lr * g;
        if (s_.name == "momentum" || s_.name == "nesterov") {
            first = s_.momentum * first + g;
            return s_.lr * (s_.name == "momentum" ? first : g + s_.momentum * first);
        }
        if (s_.name == "rmsprop") {
            second = s_.rho * second + (1 - s_.rho) * g * g;
            const double root = s_.epsilon_inside ? std::sqrt(second + s_.epsilon) : std::sqrt(second) + s_.epsilon;
            return first = s_.rmsprop_momentum * first + s_.lr * g / root;
        }
        if (s_.name == "adam") {
            first = s_.beta1 * first + (1 - s_.beta1) * g;
            second = s_.beta2 * second + (1 - s_.beta2) * g * g;
            const double mean = first / (1 - std::pow(s_.beta1, count_));
            return s_.lr * mean / (std::sqrt(second / (1 - std::pow(s_.beta2, count_))) + s_.epsilon);
        }
        fail(ErrorKind::kUsage,
             "--example: optimizer.name = \"{}\": the example has sgd, momentum, nesterov, rmsprop, adam", s_.name);
    }

    const Config::Optimizer& s_;
    int count_ = 0;
    Pair first_{};
    Pair second_{};
};

}  // namespace

Config::Optimizer example_optimizer(const std::vector<std::string>& sets) {
    const auto with = [&](const std::vector<std::string>& defaults) {
        std::vector<std::string> all{"data.format=synthetic", "train.epochs=1"};
        all.insert(all.end(), defaults.begin(), defaults.end());
        all.insert(all.end(), sets.begin(), sets.end());
        return load_config({{}, {}, all, "."}).config.optimizer;
    };
    const std::vector<std::string> plain{"optimizer.name=sgd", "optimizer.lr=0.0625"};
    const Config::Optimizer optimizer = with(plain);
    if (optimizer.weight_decay != 0 || optimizer.l2 != 0) {
        fail(ErrorKind::kUsage,
             "--example: its loss has its own L2, lambda = 1/16, and no other decay: leave out optimizer.{}",
             optimizer.l2 != 0 ? "l2" : "weight_decay");
    }
    if (optimizer.name != "rmsprop") return optimizer;
    return with({"optimizer.lr=0.0625", "optimizer.epsilon=1", "optimizer.epsilon_inside=true", "optimizer.initial=1",
                 "optimizer.rmsprop_momentum=0.9"});
}

std::vector<std::vector<double>> run_example(const Scheme& scheme, int workers, int gpus,
                                             const Config::Optimizer& optimizer) {
    const double towers = scheme.towers_sum ? gpus : 1;
    const bool once = scheme.applying == Applying::kOnce;
    const double share = once && !scheme.sums ? 1.0 / workers : 1.0;
    ExampleUpdate update(optimizer);
    Pair weights{1, 2};
    std::vector<std::vector<double>> losses(static_cast<std::size_t>(workers));
    for (int step = 0; step < kExampleSteps; ++step) {
        std::vector<Pair> gradients;
        for (int w = 0; w < workers; ++w) {
            const int start = kExampleSteps * w / workers;
            const double m = kMeans[static_cast<std::size_t>((start + step) % kExampleSteps)];
            losses[static_cast<std::size_t>(w)].push_back(loss(m, weights));
            Pair g = (towers * share) * gradient(m, weights);
            if (scheme.clips_locally) g = share * clipped(gradient(m, weights), optimizer.clip_norm);
            gradients.push_back(g);
        }
        if (once) {
            Pair total{};
            for (const Pair& g : gradients) total = total + g;
            gradients = {total};
        }
        for (const Pair& g : gradients)
            update.apply(scheme.clips_locally ? g : clipped(g, optimizer.clip_norm), weights);
    }
    return losses;
}

std::vector<double> mean_losses(const std::vector<std::vector<double>>& losses) {
    std::vector<double> means(losses.front().size());
    for (const std::vector<double>& worker : losses) {
        for (std::size_t step = 0; step < means.size(); ++step) {
            means[step] += worker[step] / static_cast<double>(losses.size());
        }
    }
    return means;
}

std::string example_text(const Scheme& scheme, const std::vector<std::vector<double>>& losses) {
    TextTable table({"", "step 1", "step 2", "step 3", "step 4"});
    const auto row = [&](const std::string& name, const std::vector<double>& values) {
        std::vector<std::string> cells{name};
        for (const double value : values) cells.push_back(fmt::format("{:.12g}", value));
        table.add(cells);
    };
    for (std::size_t w = 0; w < losses.size(); ++w) row(fmt::format("worker {}", w), losses[w]);
    if (losses.size() > 1) row("mean", mean_losses(losses));
    const bool nobody_waits = scheme.applying == Applying::kAsynchronously && losses.size() > 1;
    return fmt::format(
        "{}: losses of m A B + (A^2 + B^2) / 32, from A = 1, B = 2{}\n\n{}", scheme.name,
        nobody_waits ? "\nNobody waits there; here all gradients of a step are of the same weights." : "",
        table.text());
}

std::string example_json(const Scheme& scheme, int gpus, const Config::Optimizer& optimizer,
                         const std::vector<std::vector<double>>& losses) {
    nlohmann::ordered_json json = {{"scheme", scheme.name},
                                   {"workers", losses.size()},
                                   {"gpus", gpus},
                                   {"optimizer", optimizer.name},
                                   {"lr", optimizer.lr},
                                   {"losses", losses},
                                   {"mean_losses", mean_losses(losses)}};
    return json.dump();
}

}  // namespace lockstep

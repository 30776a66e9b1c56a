// Where two traces part. The first step with other weights is found by bisection, since what differs once goes on
// differing; that everything before it is equal is then checked line by line, and an earlier difference that the
// weights do not show comes first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "io/json_number.hpp"
#include "train/run_diff.hpp"

namespace lockstep {
namespace {

/// Weights at one moment, of all ranks. Gradients of ranks apart are no part of it: a start has none to compare.
struct Weights {
    std::vector<uint64_t> hashes;
    std::vector<TraceApart> apart;
    bool operator==(const Weights&) const = default;
};

std::vector<TraceApart> apart_in_weights(std::vector<TraceApart> apart) {
    std::erase_if(apart, [](const TraceApart& a) { return a.weights.empty(); });
    for (TraceApart& a : apart) a.gradient.clear();
    return apart;
}

std::optional<Weights> weights_at(const TraceFile& trace, int64_t step) {
    if (trace.first_step() == step) return Weights{trace.start().weights, apart_in_weights(trace.start().apart)};
    if (trace.line(step).empty()) return {};
    TraceStep line = trace.step(step);
    return Weights{std::move(line.weights), apart_in_weights(std::move(line.apart))};
}

/// Updates that both traces tell of, ascending.
std::vector<int64_t> common_steps(const TraceFile& left, const TraceFile& right) {
    std::vector<int64_t> steps;
    std::set_intersection(left.steps().begin(), left.steps().end(), right.steps().begin(), right.steps().end(),
                          std::back_inserter(steps));
    return steps;
}

using Names = std::vector<TraceTensor>;

/// Tensors whose hashes differ, or of which a rank has another than rank 0 in one of the runs alone.
std::vector<std::size_t> differing(const Names& names, const std::vector<uint64_t>& left,
                                   const std::vector<uint64_t>& right, const std::vector<TraceApart>& left_apart,
                                   const std::vector<TraceApart>& right_apart,
                                   std::vector<std::string> TraceApart::*list) {
    std::vector<std::size_t> numbers;
    const auto ranks = [&](const std::vector<TraceApart>& apart, const std::string& name) {
        std::vector<int> found;
        for (const TraceApart& a : apart) {
            if (std::count((a.*list).begin(), (a.*list).end(), name) > 0) found.push_back(a.rank);
        }
        return found;
    };
    for (std::size_t i = 0; i < left.size(); ++i) {  // gradients have no buffers, whose names are the last
        if (left[i] != right[i] || ranks(left_apart, names[i].name) != ranks(right_apart, names[i].name)) {
            numbers.push_back(i);
        }
    }
    return numbers;
}

std::string listed(const Names& names, const std::vector<std::size_t>& numbers) {
    std::vector<std::string> texts;
    for (const std::size_t i : numbers) texts.push_back(names[i].name);
    return fmt::format("{} of {} tensors differ: {}", numbers.size(), names.size(), fmt::join(texts, ", "));
}

std::vector<std::string> apart_details(const std::vector<TraceApart>& apart, const char* run) {
    std::vector<std::string> details;
    for (const TraceApart& a : apart) {
        const auto tell = [&](const char* what, const std::vector<std::string>& tensors) {
            if (tensors.empty()) return;
            details.push_back(fmt::format("in {} rank {} has another {} than rank 0: {}", run, a.rank, what,
                                          fmt::join(tensors, ", ")));
        };
        tell("total gradient", a.gradient);
        tell("weight", a.weights);
    }
    return details;
}

/// A step of both runs, looked at stage by stage. Nodes of the canonical tree that both runs had as a rank's own sum
/// tell gradients from their reduction.
class StepDiff {
  public:
    StepDiff(const TraceFile& left_file, const TraceFile& right_file, int64_t step, bool other_order)
        : names_(left_file.start().tensors),
          left_(left_file.step(step)),
          right_(right_file.step(step)),
          other_order_(other_order),
          same_shards_(left_file.start().shards == right_file.start().shards) {
        if (!same_shards_) return;  // [0, 4) is another part of the batch then
        for (const TraceNode& node : left_.own) {
            const auto same = std::find_if(right_.own.begin(), right_.own.end(),
                                           [&](const TraceNode& other) { return other.shards == node.shards; });
            if (same != right_.own.end()) common_.push_back({&node, &*same});
        }
    }

    FirstDifference find() {
        found_.step = left_.step;
        if (!(data() || forward() || gradient() || reduction() || optimizer())) {
            // What is left is the number of the epoch, or a loss that another order of additions explains.
            left_.epoch != right_.epoch ? set("data", "epoch") : set("forward", "loss");
        }
        if (left_.lr != right_.lr) {
            found_.details.push_back(
                fmt::format("learning rate: {} against {}", json_number(left_.lr), json_number(right_.lr)));
        }
        for (const auto& [apart, run] : {std::pair{&left_.apart, "RUN_A"}, {&right_.apart, "RUN_B"}}) {
            for (std::string& detail : apart_details(*apart, run)) found_.details.push_back(std::move(detail));
        }
        return std::move(found_);
    }

  private:
    using Pair = std::pair<const TraceNode*, const TraceNode*>;

    bool set(const char* stage, const std::string& tensor, const std::string& detail = "") {
        found_.stage = stage;
        found_.tensor = tensor;
        if (!detail.empty()) found_.details.push_back(detail);
        return true;
    }
    static std::string place(const Pair& pair) {
        return fmt::format("shards [{}, {}), rank {} of RUN_A and {} of RUN_B", pair.first->shards.begin,
                           pair.first->shards.end, pair.first->rank, pair.second->rank);
    }
    /// Every sum that a rank had by itself was recorded by both.
    bool all_common() const { return !common_.empty() && common_.size() == left_.own.size(); }

    bool data() {
        if (left_.indices != right_.indices || left_.samples != right_.samples) {
            return set(
                "data", "indices",
                left_.samples == right_.samples
                    ? fmt::format("the {} samples of the global batch are others, or in another order", left_.samples)
                    : fmt::format("the global batch has {} samples against {}", left_.samples, right_.samples));
        }
        if (left_.data == right_.data) return false;
        return set("data", "samples", "the same samples have other pixels or labels");
    }

    bool forward() {
        for (const Pair& pair : common_) {
            if (pair.first->loss == pair.second->loss) continue;
            return set("forward", "loss",
                       fmt::format("summed over {}: {} against {}", place(pair), json_number(pair.first->loss),
                                   json_number(pair.second->loss)));
        }
        if (left_.loss == right_.loss) return false;
        const std::string values =
            fmt::format("the loss is {} against {}", json_number(left_.loss), json_number(right_.loss));
        if (all_common()) return set("reduction", "loss", values + ", of equal sums of all ranks");
        if (other_order_ && explained_by_order()) {
            found_.details.push_back(values + ", no more than another order of additions makes");
            return false;
        }
        return set("forward", "loss", values);
    }
    // Two sums of the same b terms that are not negative, in any orders, differ by at most 2 (b - 1) 2^-24 of the sum.
    bool explained_by_order() const {
        const double bound = 2.0 * static_cast<double>(left_.samples) * 0x1p-24;
        return std::abs(double{left_.loss} - double{right_.loss}) <=
               bound * std::max(std::abs(double{left_.loss}), std::abs(double{right_.loss}));
    }

    // Backward begins at the last layer: of several tensors the last is the earliest.
    bool gradient() {
        for (const Pair& pair : common_) {
            const auto numbers =
                differing(names_, pair.first->gradient, pair.second->gradient, {}, {}, &TraceApart::gradient);
            if (numbers.empty()) continue;
            return set("gradient", names_[numbers.back()].name,
                       fmt::format("summed over {}: {}", place(pair), listed(names_, numbers)));
        }
        return false;
    }

    bool reduction() {
        const auto numbers =
            differing(names_, left_.gradient, right_.gradient, left_.apart, right_.apart, &TraceApart::gradient);
        if (numbers.empty()) return false;
        const std::string& name = names_[numbers.back()].name;
        const std::string what = "totals: " + listed(names_, numbers);
        const bool in_ranks = left_.gradient == right_.gradient;
        if (all_common()) return set("reduction", name, what + "; every rank's own sums are equal");
        if (in_ranks) return set("reduction", name, what);
        set("gradient", name, what);
        found_.details.push_back(
            !same_shards_ ? "cut into another number of shards, equal terms are added in another order"
            : common_.empty()
                ? "no rank of RUN_A summed the same shards as one of RUN_B: it may be their gradient or the reduction"
                : "the sums of shards that one rank had in both runs are equal: it is in the others, or the reduction");
        return true;
    }

    bool optimizer() {
        const auto numbers =
            differing(names_, left_.weights, right_.weights, left_.apart, right_.apart, &TraceApart::weights);
        if (!numbers.empty()) return set("optimizer", names_[numbers.front()].name, listed(names_, numbers));
        return left_.lr != right_.lr && set("optimizer", "lr");
    }

    const Names& names_;
    TraceStep left_, right_;
    bool other_order_;
    bool same_shards_;
    std::vector<Pair> common_;
    FirstDifference found_;
};

std::optional<FirstDifference> diff_models(const Names& left, const Names& right, int64_t step) {
    const auto describe = [](const Names& names, std::size_t i) {
        return i < names.size() ? fmt::format("{} [{}]", names[i].name, fmt::join(names[i].shape, ", ")) : "none";
    };
    for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
        if (i < left.size() && i < right.size() && left[i] == right[i]) continue;
        return FirstDifference{step,
                               "weights",
                               (i < left.size() ? left : right)[i].name,
                               {fmt::format("the models differ: tensor {} is {} against {}", i + 1, describe(left, i),
                                            describe(right, i))}};
    }
    return {};
}

std::optional<FirstDifference> diff_starts(const TraceFile& left, const TraceFile& right) {
    const int64_t step = std::max(left.first_step(), right.first_step());
    const Names& names = left.start().tensors;
    if (auto models = diff_models(names, right.start().tensors, step)) return models;
    const std::optional<Weights> l = weights_at(left, step);
    const std::optional<Weights> r = weights_at(right, step);
    if (!l || !r) return {};
    const auto numbers = differing(names, l->hashes, r->hashes, l->apart, r->apart, &TraceApart::weights);
    if (numbers.empty()) return {};
    FirstDifference found{step, "weights", names[numbers.front()].name, {listed(names, numbers)}};
    if (step > 0) {
        found.details.push_back(
            fmt::format("a run that was started from a checkpoint begins with these weights, the "
                        "steps up to {} are not in both traces",
                        step));
    }
    return found;
}

}  // namespace

std::vector<int64_t> common_moments(const TraceFile& left, const TraceFile& right) {
    std::vector<int64_t> moments = common_steps(left, right);
    const auto known = [](const TraceFile& trace, int64_t step) {
        return trace.first_step() == step || !trace.line(step).empty();
    };
    // Never one of the steps: the trace that begins there has its start for it.
    const int64_t start = std::max(left.first_step(), right.first_step());
    if (known(left, start) && known(right, start)) moments.insert(moments.begin(), start);
    return moments;
}

std::optional<FirstDifference> diff_traces(const TraceFile& left, const TraceFile& right, bool other_order) {
    if (auto starts = diff_starts(left, right)) return starts;
    const std::vector<int64_t> steps = common_steps(left, right);
    const auto parted = [&](int64_t step) { return weights_at(left, step) != weights_at(right, step); };
    auto first = steps.end();
    if (!steps.empty() && parted(steps.back())) {
        first = std::partition_point(steps.begin(), steps.end() - 1, [&](int64_t step) { return !parted(step); });
    }
    const auto earlier = std::find_if(steps.begin(), first, [&](int64_t step) {
        return common_part(left.line(step)) != common_part(right.line(step));
    });
    if (earlier == steps.end()) return {};
    FirstDifference found = StepDiff(left, right, *earlier, other_order).find();
    if (earlier != first && !parted(*earlier)) {
        found.details.push_back("the weights after this step are equal all the same");
    }
    if (earlier != steps.begin() && *(earlier - 1) != *earlier - 1) {
        found.details.push_back(fmt::format("steps {} to {} are not in both traces", *(earlier - 1) + 1, *earlier - 1));
    }
    return found;
}

}  // namespace lockstep

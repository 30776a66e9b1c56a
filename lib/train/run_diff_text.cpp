// What `lockstep diff` prints: for people, and as one JSON document.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/json_number.hpp"
#include "train/run_diff.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const char* effect_text(KeyEffect effect) {
    return effect == KeyEffect::kBits   ? "can change bits"
           : effect == KeyEffect::kPath ? "a path: its contents count"
                                        : "changes no bit";
}

std::string first_line(const RunDiff& diff) {
    if (!diff.first) return "equal";
    const FirstDifference& f = *diff.first;
    return fmt::format("differ at step {}: {}{}{}", f.step, f.stage, f.tensor.empty() ? "" : " ", f.tensor);
}

std::string weights_text(const WeightsDiff& weights) {
    std::string text = fmt::format("after step {}, by {} of both:\n", weights.step, weights.where);
    for (const std::string& name : weights.unlike)
        text += fmt::format("  {}: not in both, or of another shape\n", name);
    std::size_t width = 6;
    for (const TensorDiff& t : weights.tensors) width = std::max(width, t.name.size());
    text += fmt::format("  {:<{}} {:>9} {:>9} {:>9}  ulp:", "tensor", width, "elements", "differ", "max abs");
    for (const char* bin : kUlpBins) text += fmt::format(" {:>9}", bin);
    text += '\n';
    for (const TensorDiff& t : weights.tensors) {
        text += fmt::format("  {:<{}} {:>9} {:>9}", t.name, width, t.elements, t.differ);
        if (t.differ > 0) {
            text += fmt::format(" {:>9.3g}      ", t.max_abs);
            for (const int64_t count : t.ulp) text += fmt::format(" {:>9}", count);
            if (t.not_numbers > 0) text += fmt::format("  and {} NaN", t.not_numbers);
        }
        text += '\n';
    }
    const auto first = std::find_if(weights.tensors.begin(), weights.tensors.end(),
                                    [](const TensorDiff& t) { return t.first.has_value(); });
    if (first == weights.tensors.end()) return text + "  all are equal\n";
    return text + fmt::format("  first: {}[{}] is {} against {}\n", first->name, fmt::join(first->first->index, ", "),
                              json_number(first->first->left), json_number(first->first->right));
}

Json weights_json(const WeightsDiff& weights) {
    Json tensors = Json::array();
    for (const TensorDiff& t : weights.tensors) {
        Json entry = {{"name", t.name}, {"elements", t.elements}, {"differ", t.differ}};
        if (t.first) {
            Json ulp = Json::object();
            for (std::size_t i = 0; i < kUlpBins.size(); ++i) ulp[kUlpBins[i]] = t.ulp[i];
            entry["max_abs"] = t.max_abs;
            entry["ulp"] = ulp;
            entry["nan"] = t.not_numbers;
            entry["first"] = {{"index", t.first->index},
                              {"a", Json::parse(json_number(t.first->left))},
                              {"b", Json::parse(json_number(t.first->right))}};
        }
        tensors.push_back(entry);
    }
    return {{"step", weights.step}, {"where", weights.where}, {"unlike", weights.unlike}, {"tensors", tensors}};
}

}  // namespace

std::string diff_text(const RunDiff& diff) {
    std::string text = first_line(diff) + "\n";
    for (const KeyDifference& key : diff.keys) {
        text += fmt::format("{}: {} against {} ({})\n", key.key, key.left, key.right, effect_text(key.effect));
    }
    for (const FactDifference& fact : diff.facts) {
        text += fmt::format("{}: {} against {}\n", fact.name, fact.left, fact.right);
    }
    if (diff.first) {
        for (const std::string& detail : diff.first->details) text += detail + "\n";
    }
    for (const std::string& note : diff.notes) text += note + "\n";
    if (diff.weights) text += weights_text(*diff.weights);
    return text;
}

std::string diff_json(const RunDiff& diff) {
    Json keys = Json::array();
    for (const KeyDifference& key : diff.keys) {
        keys.push_back(
            {{"key", key.key}, {"a", key.left}, {"b", key.right}, {"changes_bits", key.effect == KeyEffect::kBits}});
    }
    Json facts = Json::array();
    for (const FactDifference& fact : diff.facts) {
        facts.push_back({{"name", fact.name}, {"a", fact.left}, {"b", fact.right}});
    }
    Json json = {{"equal", !diff.first.has_value()}};
    if (diff.first) {
        json["step"] = diff.first->step;
        json["stage"] = diff.first->stage;
        json["tensor"] = diff.first->tensor;
        json["details"] = diff.first->details;
    }
    json["keys"] = keys;
    json["facts"] = facts;
    json["notes"] = diff.notes;
    if (diff.weights) json["weights"] = weights_json(*diff.weights);
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep

#include "train/run_diff.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "io/files.hpp"
#include "train/checkpoint.hpp"

namespace lockstep {
namespace {

/// Whether the two runs may add the same terms in another order, by their configs.
bool other_order(const RunRecord& left, const RunRecord& right) {
    const Config& l = left.config;
    const Config& r = right.config;
    const bool native = l.reduce.algorithm == "native" || r.reduce.algorithm == "native";
    return native || l.batch.shards != r.batch.shards || l.batch.layout != r.batch.layout ||
           left.arithmetic != right.arithmetic;
}

std::vector<FactDifference> differing_facts(const RunRecord& left, const RunRecord& right) {
    std::vector<FactDifference> facts;
    const auto compare = [&](const char* name, const std::string& l, const std::string& r) {
        if (l != r && !l.empty() && !r.empty()) facts.push_back({name, l, r});
    };
    const auto list = [](const std::vector<std::string>& entries) {
        std::vector<std::string> once;  // of many ranks on few hosts
        for (const std::string& entry : entries) {
            if (std::find(once.begin(), once.end(), entry) == once.end()) once.push_back(entry);
        }
        return fmt::format("{}", fmt::join(once, "; "));
    };
    compare("version", left.version, right.version);
    compare("numeric fingerprint", left.arithmetic, right.arithmetic);
    compare("training data", left.train_data, right.train_data);
    compare("test data", left.test_data, right.test_data);
    if (left.world > 0 && right.world > 0) compare("ranks", fmt::to_string(left.world), fmt::to_string(right.world));
    compare("hosts", list(left.hosts), list(right.hosts));
    compare("devices", list(left.devices), list(right.devices));
    return facts;
}

std::vector<KeyDifference> differing_keys(const RunRecord& left, const RunRecord& right) {
    std::vector<KeyDifference> keys = config_differences(left.config, right.config);
    std::stable_partition(keys.begin(), keys.end(),
                          [](const KeyDifference& d) { return d.effect == KeyEffect::kBits; });
    return keys;
}

/// How each run ends, where they do not end alike.
void compare_lengths(const RunRecord& left, const RunRecord& right, RunDiff& diff) {
    const auto ends = [](const RunRecord& run) {
        return fmt::format("{} {} step {}", run.path, run.end ? "ends after" : "is not done, its last known is",
                           run.last_step());
    };
    if (left.end && right.end && left.end->step == right.end->step) return;
    if (left.end && right.end && !diff.first) {
        diff.first = FirstDifference{std::min(left.end->step, right.end->step) + 1, "length", "", {}};
    }
    diff.notes.push_back(fmt::format("{}; {}", ends(left), ends(right)));
}

/// By how much the weights differ, at the first place after the difference at which both kept them.
void compare_weights(const RunRecord& left, const RunRecord& right, RunDiff& diff) {
    const int64_t from = diff.first->step;
    WeightsDiff weights;
    const auto add = [&](const std::string& file) {
        diff_tensors(SafetensorsFile::read(left.path + "/" + file), SafetensorsFile::read(right.path + "/" + file),
                     weights);
    };
    std::vector<int64_t> steps;
    std::set_intersection(left.checkpoints.begin(), left.checkpoints.end(), right.checkpoints.begin(),
                          right.checkpoints.end(), std::back_inserter(steps));
    const auto near = std::lower_bound(steps.begin(), steps.end(), from);
    if (near != steps.end()) {
        weights.step = *near;
        weights.where = "checkpoints/" + checkpoint_name(*near);
        add(weights.where + "/model.safetensors");
        add(weights.where + "/optimizer.safetensors");
    } else if (left.end && right.end && left.end->step == right.end->step) {
        weights.step = left.end->step;
        weights.where = "model.safetensors";
        add(weights.where);
    } else {
        diff.notes.push_back(
            "the two kept no checkpoint of one step from there on, so that it cannot be told by how much they differ; "
            "checkpoint.every_steps and checkpoint.keep keep more");
        return;
    }
    diff.weights = std::move(weights);
}

/// The steps that each trace tells of.
std::string reach(const RunRecord& left, const RunRecord& right) {
    return fmt::format("steps {} to {} of RUN_A, {} to {} of RUN_B", left.trace->first_step(), left.trace->last_step(),
                       right.trace->first_step(), right.trace->last_step());
}

}  // namespace

RunDiff diff_runs(const std::string& left_path, const std::string& right_path) {
    const RunRecord left = read_run_record(left_path);
    const RunRecord right = read_run_record(right_path);
    RunDiff diff;
    diff.keys = differing_keys(left, right);
    diff.facts = differing_facts(left, right);
    int64_t compared = 0;
    const char* traceless = nullptr;
    if (left.trace && right.trace) {
        diff.first = diff_traces(*left.trace, *right.trace, other_order(left, right));
        const std::vector<int64_t> moments = common_moments(*left.trace, *right.trace);
        compared = static_cast<int64_t>(moments.size());
        diff.notes.push_back(moments.empty()
                                 ? fmt::format("the traces have no step in common: {}", reach(left, right))
                                 : fmt::format("by trace.jsonl: steps {} to {}", moments.front(), moments.back()));
    } else {
        traceless = left.trace ? "RUN_B has" : right.trace ? "RUN_A has" : "the two have";
    }
    // Also where the traces part: they may begin long after the runs did.
    const auto before = diff.first ? std::optional(diff.first->step) : std::nullopt;
    if (auto earlier = diff_files(left, right, before, compared)) diff.first = std::move(earlier);
    if (compared == 0 && !diff.first) {
        fail(ErrorKind::kData, "{} and {}: no step, checkpoint or final weights of both to compare{}", left_path,
             right_path, left.trace && right.trace ? "; the traces tell of " + reach(left, right) : "");
    }
    const bool parted = diff.first.has_value();
    if (traceless != nullptr) {
        diff.notes.push_back(fmt::format("{} no trace.jsonl{}", traceless,
                                         parted
                                             ? ": check.trace = \"hash\" would tell the step and the stage"
                                             : ": as far as both go equal in what metrics.jsonl, checkpoints and final "
                                               "weights tell"));
    }
    compare_lengths(left, right, diff);
    if (parted) compare_weights(left, right, diff);
    return diff;
}

}  // namespace lockstep

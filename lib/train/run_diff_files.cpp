// Where two runs part as far as their files tell without traces: metrics.jsonl, checkpoints of equal steps, the final
// weights.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/error.hpp"
#include "io/files.hpp"
#include "train/checkpoint.hpp"
#include "train/run_diff.hpp"

namespace lockstep {
namespace {

/// Fields of a line that differ, those alone that both have: which others there are is a matter of the config.
std::vector<std::string> differing_fields(const RunEvent& left, const RunEvent& right) {
    std::vector<std::string> names;
    for (const auto& [name, value] : left.fields) {
        const auto other = right.fields.find(name);
        if (other != right.fields.end() && other->second != value) names.push_back(name);
    }
    return names;
}

std::string field_values(const std::string& name, const RunEvent& left, const RunEvent& right) {
    return fmt::format("{}: {} against {}", name, left.fields.at(name), right.fields.at(name));
}

/// Of the fields of a step's line, in the order of a step.
std::pair<std::string, std::string> stage_of_field(const std::vector<std::string>& fields) {
    for (const auto& [name, stage] : {std::pair{"epoch", "data"},
                                      {"samples", "data"},
                                      {"loss", "forward"},
                                      {"grad_norm", "gradient"},
                                      {"lr", "optimizer"}}) {
        if (std::count(fields.begin(), fields.end(), name) > 0) return {stage, name};
    }
    return {"forward", fields.front()};
}

/// Calls visit(left, right) for lines of equal step (and split) until it says true.
template <class Visit>
void for_common(const std::vector<RunEvent>& left, const std::vector<RunEvent>& right, Visit visit) {
    for (const RunEvent& l : left) {
        for (auto r = std::lower_bound(right.begin(), right.end(), l.step,
                                       [](const RunEvent&event, int64_t step) { return event.step < step; });
             r != right.end() && r->step == l.step; ++r) {
            const auto split = l.fields.find("split");
            if (split != l.fields.end() && r->fields.contains("split") && r->fields.at("split") != split->second)
                continue;
            if (visit(l, *r)) return;
        }
    }
}

class FilesDiff {
  public:
    FilesDiff(const RunRecord& left, const RunRecord& right, std::optional<int64_t> before)
        : left_(left), right_(right), before_(before) {}

    std::optional<FirstDifference> find(int64_t& compared) {
        steps();
        checkpoints();
        final_weights();
        evaluations();
        compared += compared_;
        return std::move(found_);
    }

  private:
    bool too_late(int64_t step) const { return before_ && step >= *before_; }
    /// What is offered later counts only where its step is an earlier one.
    void offer(FirstDifference difference) {
        if (too_late(difference.step)) return;
        if (!found_ || difference.step < found_->step) found_ = std::move(difference);
    }

    void steps() {
        int64_t equal = 0;
        for_common(left_.steps, right_.steps, [&](const RunEvent& l, const RunEvent& r) {
            ++compared_;
            const std::vector<std::string> fields = differing_fields(l, r);
            if (fields.empty()) {
                equal = l.step;
                return false;
            }
            const auto [stage, name] = stage_of_field(fields);
            FirstDifference found{l.step, stage, name, {}};
            for (const std::string& field : fields) found.details.push_back(field_values(field, l, r));
            found.details.push_back(fmt::format(
                "by metrics.jsonl, whose line of step {} is the last equal one; they may have parted in between",
                equal));
            offer(std::move(found));
            return true;
        });
    }

    void checkpoints() {
        std::vector<int64_t> steps;
        std::set_intersection(left_.checkpoints.begin(), left_.checkpoints.end(), right_.checkpoints.begin(),
                              right_.checkpoints.end(), std::back_inserter(steps));
        for (const int64_t step : steps) {
            if (too_late(step) || (found_ && found_->step <= step)) return;
            const std::string name = checkpoint_name(step);
            Checkpoint l = read_checkpoint(left_.path + "/checkpoints/" + name);
            Checkpoint r = read_checkpoint(right_.path + "/checkpoints/" + name);
            ++compared_;
            if (l.model == r.model && l.optimizer == r.optimizer) continue;
            compare(step, "checkpoints/" + name + "/model.safetensors", std::move(l.model), std::move(r.model));
            compare(step, "checkpoints/" + name + "/optimizer.safetensors", std::move(l.optimizer),
                    std::move(r.optimizer));
        }
    }

    void final_weights() {
        if (!left_.end || !right_.end || left_.end->step != right_.end->step) return;
        ++compared_;
        if (too_late(left_.end->step)) return;
        const std::string file = "/model.safetensors";
        if (left_.end->fields.at("sha256") != right_.end->fields.at("sha256")) {
            compare(left_.end->step, "model.safetensors", read_file(left_.path + file), read_file(right_.path + file));
        }
    }

    void compare(int64_t step, const std::string& where, std::vector<std::byte> left, std::vector<std::byte> right) {
        WeightsDiff diff;
        diff_tensors(SafetensorsFile::parse(std::move(left), left_.path + "/" + where),
                     SafetensorsFile::parse(std::move(right), right_.path + "/" + where), diff);
        std::string name = diff.unlike.empty() ? "" : diff.unlike.front();
        for (const TensorDiff& tensor : diff.tensors) {
            if (name.empty() && tensor.differ > 0) name = tensor.name;
        }
        if (name.empty()) return;  // the tensors are equal
        offer(
            {step, "weights", name, {fmt::format("by {}; what made them differ lies at this step or before", where)}});
    }

    // Where the traces show a later difference and have this step as equal, another evaluation is one of other test
    // data, which would hide what they show.
    void evaluations() {
        const auto traced = [&](int64_t step) {
            return !left_.trace->line(step).empty() && !right_.trace->line(step).empty();
        };
        for_common(left_.evaluations, right_.evaluations, [&](const RunEvent& l, const RunEvent& r) {
            ++compared_;
            if (before_ && traced(l.step)) return false;
            const std::vector<std::string> fields = differing_fields(l, r);
            if (fields.empty()) return false;
            const bool loss = std::count(fields.begin(), fields.end(), "loss") > 0;
            FirstDifference found{l.step, "evaluation", loss ? "loss" : fields.front(), {}};
            for (const std::string& field : fields) found.details.push_back(field_values(field, l, r));
            offer(std::move(found));
            return true;
        });
    }

    const RunRecord& left_;
    const RunRecord& right_;
    std::optional<int64_t> before_;  // set where both have traces, which part there
    int64_t compared_ = 0;
    std::optional<FirstDifference> found_;
};

}  // namespace

std::optional<FirstDifference> diff_files(const RunRecord& left, const RunRecord& right, std::optional<int64_t> before,
                                          int64_t& compared) {
    return FilesDiff(left, right, before).find(compared);
}

}  // namespace lockstep

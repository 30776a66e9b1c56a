#include "train/metrics.hpp"

#include <fmt/format.h>

#include "io/json_number.hpp"
#include "train/confusion.hpp"

namespace lockstep {

std::string step_line(const StepRecord& r) {
    std::string more;
    if (r.grad_norm) more += fmt::format(R"(,"grad_norm":{})", json_number(*r.grad_norm));
    if (r.loss_scale) more += fmt::format(R"(,"loss_scale":{},"skipped":{})", json_number(*r.loss_scale), r.skipped);
    return fmt::format(R"({{"event":"step","step":{},"epoch":{},"samples":{},"loss":{},"lr":{}{},)"
                       R"("wall":{{"time_s":{},"samples_per_s":{}}}}})",
                       r.step, r.epoch, r.samples, json_number(r.loss), json_number(r.lr), more, json_number(r.time_s),
                       json_number(r.samples_per_s));
}

std::string eval_line(const EvalResult& r) {
    std::string line = fmt::format(R"({{"event":"eval","step":{},"epoch":{},"split":{},"count":{},"loss":{})", r.step,
                                   r.epoch, json_string(r.split), r.count, json_number(r.loss));
    if (r.mse) return line + fmt::format(R"(,"mse":{}}})", json_number(*r.mse));
    line += fmt::format(R"(,"accuracy":{})", json_number(r.accuracy));
    if (r.top5) line += fmt::format(R"(,"top5":{})", json_number(*r.top5));
    if (r.auc) line += fmt::format(R"(,"auc":{})", json_number(*r.auc));
    if (r.precision) line += fmt::format(R"(,"precision":{})", json_number(*r.precision));
    if (r.recall) line += fmt::format(R"(,"recall":{})", json_number(*r.recall));
    if (!r.confusion.empty()) line += fmt::format(R"(,"confusion":{})", confusion_json(r.confusion));
    return line + "}";
}

std::optional<double> metric_of(const EvalResult& result, std::string_view name) {
    if (name == "loss") return result.loss;
    if (name == "mse") return result.mse;
    if (result.mse) return std::nullopt;
    if (name == "accuracy") return result.accuracy;
    if (name == "top5") return result.top5;
    if (name == "auc") return result.auc;
    if (name == "precision") return result.precision;
    if (name == "recall") return result.recall;
    return std::nullopt;
}

bool higher_is_better(std::string_view name) {
    return name != "loss" && name != "mse";
}

std::vector<std::string_view> metrics_of(int classes) {
    if (classes == 0) return {"loss", "mse"};
    if (classes == 2) return {"loss", "accuracy", "auc", "precision", "recall"};
    if (classes > 5) return {"loss", "accuracy", "top5"};
    return {"loss", "accuracy"};
}

std::string end_line(const EndRecord& r) {
    return fmt::format(R"({{"event":"end","steps":{},"epochs":{},{}"weights":"{}","sha256":"{}",)"
                       R"("wall":{{"time_s":{},"samples_per_s":{}}}}})",
                       r.steps, r.epochs, r.early ? R"("early":true,)" : "", r.weights, r.sha256, json_number(r.time_s),
                       json_number(r.samples_per_s));
}

MetricsLog::MetricsLog(const std::string& path, int64_t keep_bytes)
    : file_(std::make_unique<LineFile>(path, keep_bytes)), before_step_(keep_bytes) {}

int64_t MetricsLog::size() const {
    return file_ ? file_->size() : static_cast<int64_t>(text_.size());
}

void MetricsLog::begin_step() {
    before_step_ = size();
    step_lines_.clear();
}

void MetricsLog::append(MetricsLine line) {
    if (file_) {
        file_->append(line.text);
    } else {
        text_ += line.text;
        text_ += '\n';
    }
    step_lines_.push_back(std::move(line));
}

}  // namespace lockstep

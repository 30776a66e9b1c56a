// The facts for people, a table with the reason of each line, and as JSON.
#include <nlohmann/json.hpp>

#include "explain/facts.hpp"
#include "train/text_table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json course_json(const Course& course, const Question& q) {
    Json json = {{"steps_per_epoch", course.steps_per_epoch},
                 {"steps", course.steps},
                 {"samples_per_epoch", course.samples_per_epoch},
                 {"passes_per_epoch", course.passes_per_epoch(q.samples)},
                 {"duplicates_per_epoch", course.duplicates},
                 {"omitted_per_epoch", course.omitted},
                 {"effective_batch", course.effective_batch},
                 {"gradient_scale", course.gradient_scale},
                 {"optimizer_steps_per_batch", course.optimizer_steps_per_batch},
                 {"effective_lr_factor", course.lr_factor()},
                 {"effective_lr", q.optimizer ? Json(q.optimizer->lr * course.lr_factor()) : Json(nullptr)},
                 {"schedule_stretch", course.schedule_stretch}};
    const bool normalises = q.batch_norm.value_or(true);
    json["batch_norm_samples"] = normalises ? Json(course.batch_norm_samples) : Json(nullptr);
    return json;
}

}  // namespace

std::string facts_text(const Facts& f) {
    const Question& q = f.question;
    const int64_t length = q.steps.value_or(q.epochs);
    std::string text =
        fmt::format("{}: {}\n{} samples, batch {}, {} {}{}, {} worker{}{}\n\n", f.scheme->name, f.scheme->system,
                    with_commas(q.samples), q.batch, length, q.steps ? "step" : "epoch", length == 1 ? "" : "s",
                    q.workers, q.workers == 1 ? "" : "s", q.gpus == 1 ? "" : fmt::format(" of {} GPUs", q.gpus));
    TextTable table({"", std::string(f.scheme->name), "lockstep", ""});
    for (const FactLine& line : fact_lines(f)) table.add({line.name, line.theirs, line.ours, line.reason});
    text += table.text();
    text += "\nTo get what was meant, on any number of ranks:";
    for (const std::string& line : f.write) text += "  " + line;
    return text + "\n";
}

std::string facts_json(const Facts& f, const std::string& run) {
    Json json = {{"scheme", f.scheme->name},      {"workers", f.question.workers}, {"gpus", f.question.gpus},
                 {"samples", f.question.samples}, {"batch", f.question.batch},     {"worker_batch", f.worker_batch},
                 {"epochs", f.question.epochs}};
    json.update(course_json(f.theirs, f.question));
    Json reasons = Json::array();
    for (const FactLine& line : fact_lines(f)) {
        if (!line.reason.empty()) reasons.push_back(line.name + ": " + line.reason);
    }
    json["reasons"] = reasons;
    json["lockstep"] = course_json(f.ours, f.question);
    json["lockstep"]["write"] = f.write;
    if (!run.empty()) json["run"] = Json::parse(run);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep

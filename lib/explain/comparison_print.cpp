// The comparison for people, losses and accuracies after each epoch, and as JSON.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "explain/comparison.hpp"
#include "train/text_table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostColumns = 6;

/// Epochs to show: all, or some as far apart as can be, the last among them.
std::vector<std::size_t> shown_epochs(std::size_t epochs) {
    const std::size_t columns = std::min(epochs, kMostColumns);
    std::vector<std::size_t> shown;
    for (std::size_t c = 1; c <= columns; ++c) shown.push_back(c * epochs / columns - 1);
    return shown;
}

std::string capital(std::string word) {
    word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
    return word;
}

std::string signed_text(double value) {
    return fmt::format("{:+.4f}", value);
}

/// One of the two numbers of every row and epoch, and how far the last is from Lockstep's.
std::string table_of(const Comparison& c, double EpochOutcome::*number) {
    const std::vector<EpochOutcome>& ours = c.lockstep.outcome.epochs;
    const std::vector<std::size_t> shown = shown_epochs(ours.size());
    std::vector<std::string> head{"", "updates"};
    for (const std::size_t e : shown) head.push_back(fmt::format("epoch {}", e + 1));
    head.emplace_back("against lockstep");
    head.emplace_back("");
    TextTable table(head);
    const auto add = [&](const Comparison::Row& row) {
        std::vector<std::string> cells{row.name, with_commas(row.outcome.updates)};
        const std::vector<EpochOutcome>& theirs = row.outcome.epochs;
        for (const std::size_t e : shown) {
            cells.push_back(e < theirs.size() ? fmt::format("{:.4f}", theirs[e].*number) : "-");
        }
        const bool compares = &row != &c.lockstep && theirs.size() == ours.size() && !ours.empty();
        cells.push_back(compares ? signed_text(theirs.back().*number - ours.back().*number) : "");
        cells.push_back(row.outcome.diverged ? fmt::format("not finite at update {}", *row.outcome.diverged) : row.why);
        table.add(cells);
    };
    add(c.lockstep);
    for (const Comparison::Row& row : c.causes) add(row);
    add(c.scheme);
    return table.text();
}

Json row_json(const Comparison::Row& row, const Comparison& c) {
    Json epochs = Json::array();
    for (const EpochOutcome& e : row.outcome.epochs) {
        epochs.push_back({{"epoch", e.epoch}, {"loss", e.loss}, {"accuracy", e.accuracy}});
    }
    Json json = {{"name", row.name}, {"why", row.why}, {"updates", row.outcome.updates}, {"epochs", epochs}};
    if (row.outcome.diverged) json["not_finite_at"] = *row.outcome.diverged;
    const std::vector<EpochOutcome>& ours = c.lockstep.outcome.epochs;
    if (&row != &c.lockstep && row.outcome.epochs.size() == ours.size() && !ours.empty()) {
        json["loss_difference"] = row.outcome.epochs.back().loss - ours.back().loss;
        json["accuracy_difference"] = row.outcome.epochs.back().accuracy - ours.back().accuracy;
    }
    return json;
}

}  // namespace

std::string comparison_text(const Comparison& c) {
    const std::string data = capital(c.evaluated);
    std::string text = fmt::format("\n{} loss after each epoch; each rule alone, then all together\n", data);
    text += table_of(c, &EpochOutcome::loss);
    const std::vector<EpochOutcome>& ours = c.lockstep.outcome.epochs;
    if (!ours.empty() && !std::isnan(ours.back().accuracy)) {
        text += fmt::format("\n{} accuracy\n", data);
        text += table_of(c, &EpochOutcome::accuracy);
    }
    if (!c.idle.empty()) text += "\nwithout effect here\n";
    for (const std::string& rule : c.idle) text += "  " + rule + "\n";
    if (c.worlds.size() > 1) {
        text += fmt::format("\nLockstep on 1 and on {} ranks: equal bytes, sha256 of the weights {}\n", c.worlds.back(),
                            c.sha256);
    }
    return text;
}

std::string comparison_json(const Comparison& c) {
    Json causes = Json::array();
    for (const Comparison::Row& row : c.causes) causes.push_back(row_json(row, c));
    Json ours = row_json(c.lockstep, c);
    ours["worlds"] = c.worlds;
    ours["sha256"] = c.sha256;
    const Json json = {{"evaluated", c.evaluated},
                       {"lockstep", ours},
                       {"causes", causes},
                       {"scheme", row_json(c.scheme, c)},
                       {"without_effect", c.idle}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep

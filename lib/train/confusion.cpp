#include "train/confusion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/text_table.hpp"

namespace lockstep {
namespace {

constexpr int kTableClasses = 20;  // that fit a terminal's width
constexpr std::size_t kMostConfusions = 20;

int classes_of(std::span<const int64_t> counts) {
    return static_cast<int>(std::lround(std::sqrt(static_cast<double>(counts.size()))));
}

double share(int64_t part, int64_t whole) {
    return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                      : static_cast<double>(part) / static_cast<double>(whole);
}

/// Labels and predictions that differ, the most frequent first.
std::string frequent_confusions(std::span<const int64_t> counts, int classes) {
    struct Cell {
        int64_t count;
        int label, predicted;
    };
    std::vector<Cell> cells;
    for (int label = 0; label < classes; ++label) {
        for (int predicted = 0; predicted < classes; ++predicted) {
            const int64_t count = counts[static_cast<std::size_t>(label) * static_cast<std::size_t>(classes) +
                                         static_cast<std::size_t>(predicted)];
            if (label != predicted && count > 0) cells.push_back({count, label, predicted});
        }
    }
    std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.count > b.count; });
    std::string text = fmt::format("the most frequent of {} kinds of confusion (--json has all):\n", cells.size());
    cells.resize(std::min(cells.size(), kMostConfusions));
    for (const Cell& cell : cells)
        text += fmt::format("{:>8}  label {} predicted as {}\n", cell.count, cell.label, cell.predicted);
    return text;
}

}  // namespace

void Confusion::add(std::span<const int64_t> counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
}

double Confusion::precision(int of) const {
    int64_t predicted = 0;
    for (int label = 0; label < classes_; ++label) predicted += count(label, of);
    return share(count(of, of), predicted);
}

double Confusion::recall(int of) const {
    int64_t labelled = 0;
    for (int predicted = 0; predicted < classes_; ++predicted) labelled += count(of, predicted);
    return share(count(of, of), labelled);
}

int largest_class(std::span<const float> values) {
    return static_cast<int>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::string confusion_text(std::span<const int64_t> counts) {
    const int classes = classes_of(counts);
    if (classes > kTableClasses) return frequent_confusions(counts, classes);
    std::vector<std::string> head{"label \\ predicted"};
    for (int c = 0; c < classes; ++c) head.push_back(std::to_string(c));
    TextTable table(head);
    for (int label = 0; label < classes; ++label) {
        std::vector<std::string> row{std::to_string(label)};
        for (int c = 0; c < classes; ++c) {
            row.push_back(std::to_string(counts[static_cast<std::size_t>(label) * static_cast<std::size_t>(classes) +
                                                static_cast<std::size_t>(c)]));
        }
        table.add(row);
    }
    return table.text();
}

std::string confusion_json(std::span<const int64_t> counts) {
    const auto classes = static_cast<std::size_t>(classes_of(counts));
    std::string text;
    for (std::size_t label = 0; label < classes; ++label) {
        text += fmt::format("{}[{}]", label == 0 ? "" : ",", fmt::join(counts.subspan(label * classes, classes), ","));
    }
    return "[" + text + "]";
}

}  // namespace lockstep

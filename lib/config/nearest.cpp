#include "config/nearest.hpp"

#include <algorithm>
#include <cctype>

#include "config/key.hpp"

namespace lockstep {
namespace {

size_t tolerance(std::string_view word) {
    return std::min(std::max<size_t>(2, word.size() / 3), word.size() / 2);
}

}  // namespace

size_t edit_distance(std::string_view left, std::string_view right) {
    const auto same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    };
    std::vector<size_t> before, last, row(right.size() + 1);
    for (size_t j = 0; j <= right.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= left.size(); ++i) {
        before = std::move(last);
        last = row;
        row[0] = i;
        for (size_t j = 1; j <= right.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(left[i - 1], right[j - 1]) ? 0u : 1u)});
            if (i > 1 && j > 1 && same(left[i - 1], right[j - 2]) && same(left[i - 2], right[j - 1])) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
    }
    return row[right.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& words) {
    constexpr size_t kTelling = 3;  // letters that are no accident
    std::string best;
    for (const std::string& candidate : words) {
        const bool begins = candidate.size() > word.size() &&
                            edit_distance(word, std::string_view(candidate).substr(0, word.size())) == 0;
        if (begins && (best.empty() || candidate.size() < best.size())) best = candidate;
    }
    if (!best.empty() && word.size() >= kTelling) return best;
    best.clear();
    size_t least = tolerance(word) + 1;
    for (const std::string& candidate : words) {
        const size_t distance = edit_distance(word, candidate);
        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    return best;
}

std::string nearest_key(std::string_view name) {
    const auto parts = [](std::string_view full) {
        const size_t dot = full.rfind('.');
        return dot == std::string_view::npos ? std::pair(std::string_view(), full)
                                             : std::pair(full.substr(0, dot), full.substr(dot + 1));
    };
    const auto [section, last] = parts(name);
    std::string best;
    size_t least = name.size();
    const auto consider = [&](size_t distance, size_t most, const std::string& key) {
        if (distance > most || distance >= least) return;
        least = distance;
        best = key;
    };
    for (const std::string& key : settable_names()) {
        const auto [key_section, key_last] = parts(key);
        consider(edit_distance(name, key), std::min<size_t>(3, tolerance(name)), key);
        // The right name in the wrong section, or in none, is one mistake, whatever the section's length.
        consider(edit_distance(last, key_last) + (section == key_section ? 0 : 1), tolerance(last), key);
    }
    return best;
}

std::string did_you_mean(const std::string& suggestion) {
    return suggestion.empty() ? "" : "; did you mean " + suggestion + "?";
}

}  // namespace lockstep

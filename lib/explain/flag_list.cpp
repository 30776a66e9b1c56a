#include "explain/flag_list.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.hpp"
#include "core/shown_text.hpp"

namespace lockstep {
namespace {

bool is_number(std::string_view word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
}

bool is_open_list(std::string_view value) {
    return (value.starts_with('[') && value.find(']') == std::string_view::npos) ||
           (value.starts_with('(') && value.find(')') == std::string_view::npos);
}

/// "100, 75" of "[100, 75]"; anything else as it is.
std::string_view without_brackets(std::string_view list) {
    const bool bracketed =
        (list.starts_with('[') && list.ends_with(']')) || (list.starts_with('(') && list.ends_with(')'));
    return bracketed ? list.substr(1, list.size() - 2) : list;
}

std::optional<bool> truth_of(std::string_view word) {
    for (const char* yes : {"true", "True", "1", "yes"}) {
        if (word == yes) return true;
    }
    for (const char* no : {"false", "False", "0", "no"}) {
        if (word == no) return false;
    }
    return std::nullopt;
}

template <class Number>
Number number_of(const FlagList::Flag& flag, std::string_view text, const char* kind) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::result_out_of_range && stop == end)
        fail(ErrorKind::kUsage, "{}: the value is beyond 64 bits", flag.spelled);
    if (error != std::errc() || stop != end) fail(ErrorKind::kUsage, "{}: the value is no {}", flag.spelled, kind);
    return value;
}

template <class Number>
void check_least(const FlagList::Flag& flag, Number value, Number least) {
    if (value < least) fail(ErrorKind::kUsage, "{}: must be at least {}", flag.spelled, least);
}

}  // namespace

bool is_flag(std::string_view word) {
    return word.starts_with('-') && word.find_first_not_of('-') != std::string_view::npos && !is_number(word);
}

FlagList::FlagList(std::span<const std::string> words, const FlagSpelling& spelling) {
    for (auto word = words.begin(); word != words.end(); ++word) {
        if (!is_flag(*word)) {
            if (word->find_first_not_of('-') != std::string::npos) positionals_.push_back(*word);
            continue;
        }
        Flag flag;
        std::string spelled = *word;
        std::string name = word->substr(word->find_first_not_of('-'));
        const std::size_t equals = name.find('=');
        bool valued = equals != std::string::npos;
        if (valued) {
            flag.value = name.substr(equals + 1);
            name.resize(equals);
        }
        // "-b64": a short flag with its number.
        const bool attached = !word->starts_with("--") && name.size() > 1 && !valued &&
                              spelling.short_names.contains(name.substr(0, 1)) && is_number(name.substr(1));
        if (attached) {
            flag.value = name.substr(1);
            name.resize(1);
            valued = true;
        }
        if (const auto known = spelling.short_names.find(name); known != spelling.short_names.end())
            name = known->second;
        std::replace(name.begin(), name.end(), '-', '_');
        flag.name = name;
        const auto add = [&](const std::string& more) {
            spelled.append(" ").append(more);
            flag.value.append(flag.value.empty() || flag.value.ends_with(',') ? "" : ",").append(more);
            valued = true;
        };
        const bool several = spelling.lists.contains(name);
        bool open =
            !valued && !(spelling.switches.contains(name) && (word + 1 == words.end() || !truth_of(*(word + 1))));
        for (; open && word + 1 != words.end() && !is_flag(*(word + 1)); ++word) {
            // Lists of numbers stand as several words: --lr-steps 30 60.
            if (valued && !several && !(is_number(*word) && is_number(*(word + 1)))) break;
            add(*(word + 1));
        }
        // A list in brackets, as Python writes it, goes on to the closing one: --hidden_units=[100, 75].
        while (is_open_list(flag.value) && word + 1 != words.end() && !is_flag(*(word + 1))) add(*++word);
        flag.bare = !valued;
        flag.spelled = printable(spelled);
        flags_.push_back(flag);
    }
}

std::optional<std::string> FlagList::take_positional() {
    if (positionals_.empty()) return std::nullopt;
    std::string first = positionals_.front();
    positionals_.erase(positionals_.begin());
    return first;
}

const FlagList::Flag* FlagList::take(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
        const Flag* last = nullptr;
        for (Flag& flag : flags_) {
            if (flag.name != name) continue;
            flag.taken = true;
            last = &flag;
        }
        if (last != nullptr) return last;
    }
    return nullptr;
}

const FlagList::Flag* FlagList::take_valued(std::initializer_list<std::string_view> names) {
    const Flag* flag = take(names);
    if (flag == nullptr) return nullptr;
    if (flag->bare) fail(ErrorKind::kUsage, "{}: no value stands behind it", flag->spelled);
    if (flag->value.empty()) fail(ErrorKind::kUsage, "{}: the value is empty", flag->spelled);
    return flag;
}

std::optional<int64_t> FlagList::take_count(std::initializer_list<std::string_view> names, int64_t least,
                                            int64_t most) {
    const Flag* flag = take_valued(names);
    if (flag == nullptr) return std::nullopt;
    const auto value = number_of<int64_t>(*flag, flag->value, "whole number");
    check_least(*flag, value, least);
    if (value > most) fail(ErrorKind::kUsage, "{}: must be at most {}", flag->spelled, most);
    return value;
}

std::optional<double> FlagList::take_number(std::initializer_list<std::string_view> names, double least) {
    const Flag* flag = take_valued(names);
    if (flag == nullptr) return std::nullopt;
    const auto value = number_of<double>(*flag, flag->value, "number");
    if (!std::isfinite(value)) fail(ErrorKind::kUsage, "{}: must be finite", flag->spelled);
    check_least(*flag, value, least);
    return value;
}

std::optional<std::vector<int64_t>> FlagList::take_counts(std::initializer_list<std::string_view> names) {
    const Flag* flag = take_valued(names);
    if (flag == nullptr) return std::nullopt;
    std::vector<int64_t> values;
    const std::vector<std::string> parts = parts_of(without_brackets(flag->value));
    if (parts.empty()) fail(ErrorKind::kUsage, "{}: the list is empty", flag->spelled);
    for (const std::string& part : parts) {
        values.push_back(number_of<int64_t>(*flag, part, "list of whole numbers"));
        check_least(*flag, values.back(), int64_t{1});
    }
    return values;
}

std::string FlagList::name_of(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
        for (auto flag = flags_.rbegin(); flag != flags_.rend(); ++flag) {
            if (flag->name == name) return flag->spelled.substr(0, flag->spelled.find_first_of("= "));
        }
    }
    return "";
}

std::optional<bool> FlagList::take_switch(std::string_view name) {
    if (take({std::string("no").append(name)}) != nullptr) return false;
    const Flag* flag = take({name});
    if (flag == nullptr) return std::nullopt;
    if (flag->bare) return true;
    if (const auto truth = truth_of(flag->value)) return truth;
    fail(ErrorKind::kUsage, "{}: the value is neither true nor false", flag->spelled);
}

std::optional<std::string> FlagList::take_text(std::initializer_list<std::string_view> names) {
    const Flag* flag = take_valued(names);
    if (flag == nullptr) return std::nullopt;
    return flag->value;
}

std::string printable(std::string_view text) {
    const std::string line = shown_text(text, LineEnds::kEscaped);
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const std::string_view rest = std::string_view(line).substr(i);
        const bool separator = rest.starts_with("\u2028") || rest.starts_with("\u2029");  // of lines, of paragraphs
        out += separator ? ' ' : line[i];
        if (separator) i += std::string_view("\u2028").size() - 1;
    }
    return out;
}

std::string lower_case(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
}

std::vector<std::string> parts_of(std::string_view list, char separator) {
    std::vector<std::string> parts;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(separator), list.size());
        std::string_view part = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        if (!part.empty()) parts.emplace_back(part);
    }
    return parts;
}

}  // namespace lockstep

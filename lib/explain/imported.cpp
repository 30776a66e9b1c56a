#include "explain/imported.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.hpp"
#include "io/json_number.hpp"

namespace lockstep {
namespace {

// As a config file has them.
constexpr std::array kSections{"",         "data",       "augment",    "model", "batch", "train", "optimizer",
                               "schedule", "batch_norm", "checkpoint", "eval",  "log",   "device"};

/// The shortest decimal; TOML wants a digit on both sides of the point, and JSON does too. Of a product of short
/// decimals (0.05 x 0.1) the one that was meant: what its 15 digits say, where they are far fewer.
std::string number(double value) {
    constexpr std::size_t kFewer = 4;
    std::string exact = json_number(value);
    const std::string digits = fmt::format("{:.15g}", value);
    double rounded = value;
    std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
    std::string meant = json_number(rounded);
    return meant.size() + kFewer <= exact.size() ? meant : exact;
}

}  // namespace

std::string toml_quoted(std::string_view text) {
    return json_string(std::string(text));
}

std::string toml_list(const std::vector<double>& values) {
    std::string list = "[";
    for (const double value : values) list.append(list.size() > 1 ? ", " : "").append(number(value));
    return list + "]";
}

std::string fp16_words(std::string_view flag) {
    return fmt::format(
        "{}: here matrix products in fp16 by the vendor's libraries: GPUs only, and equal bits need equal GPUs; leave "
        "out device.arithmetic and device.precision for fp32 anywhere",
        flag);
}

std::string counted(int64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void Imported::set(std::string_view key, std::string value, std::string why) {
    const std::size_t dot = key.find('.');
    const bool top = dot == std::string_view::npos;
    Line line{std::string(top ? "" : key.substr(0, dot)), std::string(top ? key : key.substr(dot + 1)),
              std::move(value), std::move(why)};
    const auto same = std::find_if(lines_.begin(), lines_.end(), [&](const Line& other) {
        return other.section == line.section && other.key == line.key;
    });
    if (same != lines_.end()) {
        *same = std::move(line);
    } else {
        lines_.push_back(std::move(line));
    }
}

void Imported::set(std::string_view key, int64_t value, std::string why) {
    set(key, std::to_string(value), std::move(why));
}

void Imported::set(std::string_view key, double value, std::string why) {
    set(key, number(value), std::move(why));
}

void Imported::set_text(std::string_view key, std::string_view text, std::string why) {
    set(key, toml_quoted(text), std::move(why));
}

bool Imported::has(std::string_view key, std::string_view text) const {
    return std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) {
        return fmt::format("{}.{}", line.section, line.key) == key && line.value == toml_quoted(text);
    });
}

void Imported::not_needed(FlagList& flags, std::initializer_list<std::string_view> names, std::string_view why) {
    for (const std::string_view name : names) {
        if (const FlagList::Flag* flag = flags.take({name})) idle_.push_back(fmt::format("{}: {}", flag->spelled, why));
    }
}

void Imported::cannot(FlagList& flags, std::initializer_list<std::string_view> names, std::string_view why) {
    for (const std::string_view name : names) {
        if (const FlagList::Flag* flag = flags.take({name})) {
            refused_.push_back(fmt::format("{}: {}", flag->spelled, why));
        }
    }
}

void Imported::name_the_rest(const FlagList& flags) {
    for (const FlagList::Flag& flag : flags.all()) {
        if (flag.taken) continue;
        if (flag.launcher) {
            idle_.push_back(flag.spelled + ": the launcher's; here mpirun starts the ranks");
        } else {
            refused_.push_back(flag.spelled + ": not known here");
        }
    }
}

std::string Imported::toml(std::string_view head) const {
    std::string text;
    const auto comment = [&](std::string_view line) { text.append("# ").append(line).append("\n"); };
    comment(head);
    for (const std::string& line : remarks_) comment(line);
    for (const std::string& line : refused_) comment("cannot be honoured: " + line);
    for (const std::string& line : changed_) comment("done otherwise: " + line);
    for (const std::string& line : idle_) comment("nothing to do here: " + line);
    for (const char* section : kSections) {
        bool begun = false;
        for (const Line& line : lines_) {
            if (line.section != section) continue;
            if (!begun) text += line.section.empty() ? "\n" : fmt::format("\n[{}]\n", section);
            begun = true;
            const std::string setting = fmt::format("{} = {}", line.key, line.value);
            text += line.why.empty() ? setting + "\n" : fmt::format("{:<32}  # {}\n", setting, line.why);
        }
    }
    return text;
}

}  // namespace lockstep

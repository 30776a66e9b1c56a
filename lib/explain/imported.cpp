#include "explain/imported.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "config/config.hpp"
#include "config/key.hpp"
#include "config/value.hpp"
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
    if (!std::isfinite(value)) return fmt::format("{}", value);  // inf and nan are TOML, and no key takes them
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
    return in_quotes(text);
}

std::string toml_list(const std::vector<double>& values) {
    std::string list = "[";
    for (const double value : values) list.append(list.size() > 1 ? ", " : "").append(number(value));
    return list + "]";
}

int64_t batch_product(std::initializer_list<int64_t> factors, std::string_view words) {
    const auto most = static_cast<int64_t>(key_of("batch.size").range.most);
    int64_t product = 1;
    for (const int64_t factor : factors) {
        if (factor > most / product) fail(ErrorKind::kUsage, "{}: batch.size can be at most {}", words, most);
        product *= factor;
    }
    return product;
}

std::string half_words(std::string_view flag, std::string_view precision) {
    return fmt::format(
        "{}: here matrix products in {} by the vendor's libraries: GPUs only, and equal bits need equal GPUs; leave "
        "out device.arithmetic and device.precision for fp32 anywhere",
        flag, precision);
}

std::string counted(int64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

void Imported::set(std::string_view key, std::string value, std::string why) {
    const std::size_t dot = key.find('.');
    const bool top = dot == std::string_view::npos;
    Line line{std::string(top ? "" : key.substr(0, dot)), std::string(top ? key : key.substr(dot + 1)),
              std::move(value), printable(why)};
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

void Imported::set_counts(FlagList& flags, std::initializer_list<CountFlag> rows) {
    for (const CountFlag& row : rows) {
        const std::string name = flags.name_of(row.names);
        if (const auto count = flags.take_count(row.names, row.least)) {
            set(row.key, *count, fmt::format("{}{}{}", name, row.note.empty() ? "" : "; ", row.note));
        }
    }
}

bool Imported::has(std::string_view key, std::string_view text) const {
    return std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) {
        return fmt::format("{}.{}", line.section, line.key) == key && line.value == toml_quoted(text);
    });
}

void Imported::not_needed(FlagList& flags, std::initializer_list<std::string_view> names, std::string_view why) {
    for (const std::string_view name : names) {
        const std::string off = std::string("no").append(name);
        for (const std::string_view form : {name, std::string_view(off)}) {
            if (const FlagList::Flag* flag = flags.take({form})) {
                idle_.push_back(fmt::format("{}: {}", flag->spelled, why));
            }
        }
    }
}

void Imported::cannot(FlagList& flags, std::initializer_list<std::string_view> names, std::string_view why) {
    constexpr std::array kOff{"0", "0.0", "false", "False", "no", "none", "None", "[]"};
    for (const std::string_view name : names) {
        if (const FlagList::Flag* flag = flags.take({std::string("no").append(name)})) {
            idle_.push_back(fmt::format("{}: off, there too", flag->spelled));
        }
        const FlagList::Flag* flag = flags.take({name});
        if (flag == nullptr) continue;
        const bool off =
            !flag->bare && (flag->value.empty() || std::find(kOff.begin(), kOff.end(), flag->value) != kOff.end());
        if (off) {
            idle_.push_back(fmt::format("{}: off, there too", flag->spelled));
        } else {
            refused_.push_back(fmt::format("{}: {}", flag->spelled, why));
        }
    }
}

void Imported::name_the_rest(const CommandLine& line) {
    for (const Launcher& launcher : line.launchers) {
        if (launcher.kind == LauncherKind::kPython) continue;
        for (const FlagList::Flag& flag : launcher.flags.all()) {
            if (!flag.taken) idle_.push_back(flag.spelled + ": the launcher's; here mpirun starts the ranks");
        }
    }
    for (const FlagList::Flag& flag : line.flags.all()) {
        if (!flag.taken) refused_.push_back(flag.spelled + ": not known here");
    }
    for (const std::string& word : line.flags.positionals())
        refused_.push_back(printable(word) + ": belongs to no flag that is known here");
}

/// The flag that a line's reason names, as it stood there; else the reason.
std::string Imported::source_of(const Line& line, const std::vector<FlagList::Flag>& flags) {
    std::string why = line.why;
    std::replace(why.begin(), why.end(), '-', '_');
    const FlagList::Flag* found = nullptr;
    for (const FlagList::Flag& flag : flags) {
        const std::size_t at = why.find("__" + flag.name);
        if (at == std::string::npos) continue;
        const char behind = (why + " ")[at + 2 + flag.name.size()];
        const bool whole = behind != '_' && std::isalnum(static_cast<unsigned char>(behind)) == 0;
        if (whole) found = &flag;  // the last of equal flags is the one that was taken
    }
    return found != nullptr ? found->spelled : line.why;
}

std::vector<std::string> Imported::faults(const CommandLine& line) const {
    // Each line as a setting of the command line: its fault begins with it, and so can be told by its flag.
    std::vector<std::string> settings;
    for (const Line& set : lines_)
        settings.push_back(fmt::format("{}{}{}={}", set.section, set.section.empty() ? "" : ".", set.key, set.value));
    const std::vector<FlagList::Flag> flags = line.all_flags();
    try {
        (void)load_config({{}, {}, settings, "/"});
    } catch (const ConfigError& error) {
        std::vector<std::string> faults;
        for (std::string fault : parts_of(error.what(), '\n')) {
            for (std::size_t i = 0; i < settings.size(); ++i) {
                const std::string origin = fmt::format("--set {}: ", settings[i]);
                if (!fault.starts_with(origin)) continue;
                fault = fmt::format("{}: {}", source_of(lines_[i], flags), fault.substr(origin.size()));
                break;
            }
            faults.push_back(fault);
        }
        return faults;
    }
    return {};
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

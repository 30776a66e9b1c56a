// The flags of one program of a command line, as people paste it, in whatever spelling (--batch_size=64,
// --batch-size 64, -b 64, -b64, --nofuse). What reads a flag takes it; what is left was not understood.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a program's flags look like beyond the common rules. Names without dashes, '-' as '_'.
struct FlagSpelling {
    std::map<std::string, std::string> short_names;  // "b" -> "batch_size"
    std::set<std::string> switches;                  // take no value, though a word follows that is none: "--amp DIR"
    std::set<std::string> lists;                     // take every word up to the next flag: "--train-files A B"
};

class FlagList {
  public:
    FlagList() = default;
    explicit FlagList(std::span<const std::string> words, const FlagSpelling& spelling = {});

    struct Flag {
        std::string name;     // without dashes, '-' as '_'
        std::string value;    // "" of a flag alone
        std::string spelled;  // as it stood there, "--batch-size 64", printable
        bool bare = false;    // no value stood with it
        bool taken = false;
    };
    const std::vector<Flag>& all() const { return flags_; }
    bool has(std::initializer_list<std::string_view> names) const { return !name_of(names).empty(); }

    /// Words that belong to no flag and that nobody took: "main.py --epochs 90 DIR".
    const std::vector<std::string>& positionals() const { return positionals_; }
    std::optional<std::string> take_positional();

    /// Takes the first of these names that is there; the last one of several equal flags wins. Names as in Flag::name.
    const Flag* take(std::initializer_list<std::string_view> names);
    // Throw kUsage, naming the flag, where its value is missing or of another kind.
    const Flag* take_valued(std::initializer_list<std::string_view> names);
    std::optional<int64_t> take_count(std::initializer_list<std::string_view> names, int64_t least = 0,
                                      int64_t most = std::numeric_limits<int64_t>::max());
    std::optional<double> take_number(std::initializer_list<std::string_view> names,
                                      double least = std::numeric_limits<double>::lowest());
    /// "100,75", "100 75", "[100, 75]" or "(100,75)", each at least 1.
    std::optional<std::vector<int64_t>> take_counts(std::initializer_list<std::string_view> names);
    /// --x, --x=true, --x=1: true; --nox, --x=false: false.
    std::optional<bool> take_switch(std::string_view name);
    std::optional<std::string> take_text(std::initializer_list<std::string_view> names);

    /// The flag that take() takes of these, as it stood there but without its value: "--train-batch-size"; or "".
    std::string name_of(std::initializer_list<std::string_view> names) const;

  private:
    std::vector<Flag> flags_;
    std::vector<std::string> positionals_;
};

/// "-x" and "--x", but no number and no dashes alone, which end a list of flags.
bool is_flag(std::string_view word);

/// The text on one line of a comment or message: control characters of any kind and what breaks a line are escaped.
std::string printable(std::string_view text);

/// "CosineAnnealingLR" -> "cosineannealinglr".
std::string lower_case(std::string text);

/// "a,b,c" -> its parts without spaces around them; none of "".
std::vector<std::string> parts_of(std::string_view list, char separator = ',');

}  // namespace lockstep

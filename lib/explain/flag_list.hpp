// Another trainer's command line, as people paste it: launcher, script and flags, in whatever spelling
// (--batch_size=64, --batch-size 64, -b 64, --nofuse). What reads a flag takes it; what is left was not understood.
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

class FlagList {
  public:
    /// `words`: of the command line. Those before the first *.py are the launcher's. `short_names`: "b" ->
    /// "batch_size".
    /// `switches`: flags that take no value, though a word follows that is none: "--amp DIR".
    explicit FlagList(std::span<const std::string> words, const std::map<std::string, std::string>& short_names = {},
                      const std::set<std::string>& switches = {});

    struct Flag {
        std::string name;     // without dashes, '-' as '_'
        std::string value;    // "true" of a flag alone
        std::string spelled;  // as it stood there, "--batch-size 64"
        bool taken = false;
        bool launcher = false;  // stood before the script
    };
    const std::vector<Flag>& all() const { return flags_; }
    /// Words behind the script that belong to no flag: "main.py --epochs 90 DIR".
    const std::vector<std::string>& positionals() const { return positionals_; }

    /// Takes the first of these names that is there; the last one of several equal flags wins. Names as in Flag::name.
    const Flag* take(std::initializer_list<std::string_view> names);
    // Throw kUsage, naming the flag, where its value is of another kind.
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

/// "a,b,c" -> its parts without spaces around them; none of "".
std::vector<std::string> parts_of(std::string_view list, char separator = ',');

}  // namespace lockstep

// A config under way from another trainer's flags: lines of TOML, each with the flag that it comes from and why; and
// the flags that became no line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "explain/command_line.hpp"

namespace lockstep {

class Imported {
  public:
    /// "optimizer.lr", a TOML value, and what stands behind it as a comment.
    void set(std::string_view key, std::string value, std::string why);
    void set(std::string_view key, int64_t value, std::string why);
    void set(std::string_view key, double value, std::string why);
    void set_text(std::string_view key, std::string_view text, std::string why);

    /// Lines that are a flag's count as it stands, for those of the flags that are there.
    struct CountFlag {
        std::initializer_list<std::string_view> names;  // as FlagList::take
        std::string_view key;
        std::string_view note = "";  // behind the flag's name
        int64_t least = 1;
    };
    void set_counts(FlagList& flags, std::initializer_list<CountFlag> rows);

    bool has(std::string_view key, std::string_view text) const;

    /// Takes a flag, or its "no" form, if it is there, that has nothing to do here.
    void not_needed(FlagList& flags, std::initializer_list<std::string_view> names, std::string_view why);
    /// Takes a flag, if it is there, whose meaning Lockstep cannot give; one that is set to be off has none.
    void cannot(FlagList& flags, std::initializer_list<std::string_view> names, std::string_view why);
    void refuse(std::string_view flag_and_why) { refused_.push_back(printable(flag_and_why)); }
    /// A flag whose line does something else than it did there.
    void change(std::string_view flag_and_what) { changed_.push_back(printable(flag_and_what)); }
    /// Names every flag and word that nobody took.
    void name_the_rest(const CommandLine& line);
    void remark(std::string_view line) { remarks_.push_back(printable(line)); }

    /// What `config check` would refuse in these lines, each named by its flag where it comes from one.
    std::vector<std::string> faults(const CommandLine& line) const;

    /// `head`: the first comment.
    std::string toml(std::string_view head) const;
    /// "--flag=x: why", one for each flag that could not be honoured.
    const std::vector<std::string>& refused() const { return refused_; }
    /// The same, one for each flag that does something else here.
    const std::vector<std::string>& changed() const { return changed_; }

  private:
    struct Line {
        std::string section, key, value, why;
    };
    static std::string source_of(const Line& line, const std::vector<FlagList::Flag>& flags);

    std::vector<Line> lines_;
    std::vector<std::string> remarks_, idle_, refused_, changed_;
};

/// Of a seed.
inline constexpr std::string_view kOtherNumbers = "other random numbers, of course";
/// The text as a TOML string.
std::string toml_quoted(std::string_view text);
/// [a, b]
std::string toml_list(const std::vector<double>& values);
/// A batch of so many times so many; throws kUsage, naming `words`, where it is more than batch.size can be.
int64_t batch_product(std::initializer_list<int64_t> factors, std::string_view words);
/// What half precision, which `flag` asks for, is here.
std::string half_words(std::string_view flag, std::string_view precision);
/// "30 epochs", "1 epoch", "2 processes".
std::string counted(int64_t count, std::string_view what);

}  // namespace lockstep

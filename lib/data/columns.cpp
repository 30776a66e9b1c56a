#include "data/columns.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::pair<std::string_view, ColumnType>, 8> kTypes{{{"guess", ColumnType::kGuess},
                                                                         {"numeric", ColumnType::kNumeric},
                                                                         {"categorical", ColumnType::kCategorical},
                                                                         {"bucket", ColumnType::kBucket},
                                                                         {"cross", ColumnType::kCross},
                                                                         {"label", ColumnType::kLabel},
                                                                         {"target", ColumnType::kTarget},
                                                                         {"skip", ColumnType::kSkip}}};

constexpr std::array<std::pair<std::string_view, MissingPolicy>, 4> kPolicies{{{"own", MissingPolicy::kOwn},
                                                                               {"none", MissingPolicy::kNone},
                                                                               {"mean", MissingPolicy::kMean},
                                                                               {"refuse", MissingPolicy::kRefuse}}};

/// The entries of one table by their types. The key table has checked names and types of what stands in a file.
class Entries {
  public:
    explicit Entries(const ConfigTable& table) : table_(table) {}

    template <class T>
    T get(std::string_view key, T otherwise) const {
        const ConfigTable::Value* value = table_.find(key);
        if (value == nullptr) return otherwise;
        if (const T* as_asked = std::get_if<T>(value)) return *as_asked;
        if constexpr (std::is_same_v<T, double>) {
            if (const int64_t* whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
            if (const auto* whole = std::get_if<std::vector<int64_t>>(value)) return {whole->begin(), whole->end()};
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            if (const auto* one = std::get_if<std::string>(value)) return {*one};
        }
        fail(ErrorKind::kUsage, "{}: data.columns: {} has a value of the wrong type", table_.origin, key);
    }
    bool has(std::string_view key) const { return table_.find(key) != nullptr; }

  private:
    const ConfigTable& table_;
};

template <class Table>
auto choice(const Table& table, const std::string& text, const char* key, const std::string& origin) {
    for (const auto& [name, value] : table) {
        if (name == text) return value;
    }
    std::vector<std::string_view> names;
    for (const auto& entry : table) names.push_back(entry.first);
    fail(ErrorKind::kUsage, "{}: data.columns: {} = \"{}\": one of {} is needed", origin, key, text,
         fmt::join(names, ", "));
}

[[noreturn]] void refuse(const ColumnSpec& spec, const std::string& what) {
    fail(ErrorKind::kUsage, "{}: data.columns: {} ({}): {}", spec.origin, spec.name, type_name(spec.type), what);
}

void check(const ColumnSpec& spec) {
    const bool categories = spec.type == ColumnType::kCategorical || spec.type == ColumnType::kCross;
    if (spec.name.empty()) refuse(spec, "name is not set");
    if (spec.type == ColumnType::kCross && spec.of.size() < 2)
        refuse(spec, "of = [\"a\", \"b\"] must name two columns");
    if (spec.type == ColumnType::kBucket && spec.boundaries.empty()) refuse(spec, "boundaries are not set");
    if (!std::is_sorted(spec.boundaries.begin(), spec.boundaries.end(), std::less_equal<>())) {
        refuse(spec, "boundaries must rise");
    }
    if (spec.type != ColumnType::kCross && spec.of.size() > 1) refuse(spec, "of must name one column");
    if (spec.hash != 0 && (!categories || spec.hash < 1)) refuse(spec, "hash is for categories, and at least 1");
    if (spec.embedding > 0 && !categories && spec.type != ColumnType::kBucket) {
        refuse(spec, "embedding is for categories; type = \"categorical\" makes some of numbers, too");
    }
    if (!spec.vocabulary.empty() && !categories && spec.type != ColumnType::kLabel) {
        refuse(spec, "vocabulary is for categories and labels");
    }
    if (!spec.boundaries.empty() && spec.type != ColumnType::kBucket) refuse(spec, "boundaries are for a bucket");
    if (spec.hash > 0 && !spec.vocabulary.empty()) refuse(spec, "hash and vocabulary: one of the two");
    const bool number = spec.type == ColumnType::kNumeric || spec.type == ColumnType::kBucket;
    const bool usual = spec.missing == MissingPolicy::kUsual || spec.missing == MissingPolicy::kRefuse;
    if (!usual && spec.type != ColumnType::kGuess) {
        const bool of_number = spec.missing == MissingPolicy::kFill || spec.missing == MissingPolicy::kMean;
        if (of_number != number && spec.type != ColumnType::kBucket) {
            refuse(spec,
                   "of a number missing is mean or refuse, or fill = a number; of a category own, none or refuse");
        }
    }
    if (!(spec.std > 0)) refuse(spec, "std must be above 0");
    const std::set<std::string> distinct(spec.vocabulary.begin(), spec.vocabulary.end());
    if (distinct.size() != spec.vocabulary.size()) refuse(spec, "a value stands twice in the vocabulary");
}

/// What the other entries of a table without a type can only mean.
ColumnType implied_type(const ColumnSpec& spec) {
    if (spec.of.size() > 1) return ColumnType::kCross;
    if (!spec.boundaries.empty()) return ColumnType::kBucket;
    if (!spec.vocabulary.empty() || spec.hash > 0 || spec.embedding > 0) return ColumnType::kCategorical;
    return ColumnType::kGuess;
}

ColumnSpec column_spec(const ConfigTable& table) {
    const Entries entries(table);
    ColumnSpec spec;
    spec.origin = table.origin;
    spec.name = entries.get<std::string>("name", "");
    spec.type = choice(kTypes, entries.get<std::string>("type", "guess"), "type", table.origin);
    spec.of = entries.get<std::vector<std::string>>("of", {});
    spec.vocabulary = entries.get<std::vector<std::string>>("vocabulary", {});
    spec.hash = entries.get<int64_t>("hash", 0);
    spec.boundaries = entries.get<std::vector<double>>("boundaries", {});
    spec.mean = entries.get<double>("mean", 0);
    spec.std = entries.get<double>("std", 1);
    spec.standard = entries.get<std::string>("scale", "none") == "standard";
    if (spec.standard && (entries.has("mean") || entries.has("std"))) {
        refuse(spec, "scale = \"standard\" and mean or std: one of the two");
    }
    if (entries.has("fill")) spec.missing = MissingPolicy::kFill;
    spec.fill = entries.get<double>("fill", 0);
    if (entries.has("missing")) {
        if (entries.has("fill")) refuse(spec, "missing and fill: one of the two");
        spec.missing = choice(kPolicies, entries.get<std::string>("missing", ""), "missing", table.origin);
    }
    spec.strip = entries.get<std::string>("strip", "");
    spec.embedding = static_cast<int>(entries.get<int64_t>("embedding", 0));
    if (spec.type == ColumnType::kGuess) {
        spec.type = implied_type(spec);
        spec.guessed = spec.type == ColumnType::kGuess;
    }
    // One-hot crosses and buckets are what the linear part is for; the deep part learns its own.
    const bool for_wide = spec.type == ColumnType::kCross || spec.type == ColumnType::kBucket;
    spec.wide = entries.get<bool>("wide", true);
    spec.deep = entries.get<bool>("deep", !for_wide);
    check(spec);
    return spec;
}

}  // namespace

std::string_view type_name(ColumnType type) {
    for (const auto& [name, value] : kTypes) {
        if (value == type) return name;
    }
    return "?";
}

std::vector<ColumnSpec> column_specs(const std::vector<ConfigTable>& tables) {
    std::vector<ColumnSpec> specs;
    std::set<std::string> names;
    for (const ConfigTable& table : tables) {
        const ColumnSpec& spec = specs.emplace_back(column_spec(table));
        if (!names.insert(spec.name).second) refuse(spec, "the name stands twice");
    }
    return specs;
}

std::vector<ColumnSpec> guessed_specs(const std::vector<std::string>& names, const std::string& label_column) {
    std::vector<ColumnSpec> specs(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
        specs[i].name = names[i];
        specs[i].guessed = true;
    }
    auto label = std::prev(specs.end());
    if (!label_column.empty()) {
        label = std::find_if(specs.begin(), specs.end(), [&](const auto& spec) { return spec.name == label_column; });
        if (label == specs.end()) {
            fail(ErrorKind::kUsage, "data.label_column = \"{}\": the columns of the data are {}", label_column,
                 fmt::join(names, ", "));
        }
    }
    label->type = ColumnType::kLabel;
    return specs;
}

}  // namespace lockstep

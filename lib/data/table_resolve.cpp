// TableColumns against the fields of a file: which column reads which field.
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/error.hpp"
#include "data/table_columns.hpp"
#include "data/table_text.hpp"

namespace lockstep {
namespace {

/// From names to their places. Tables of genes have tens of thousands of columns: looking for each among all others
/// would take minutes.
class Places {
  public:
    explicit Places(const std::vector<std::string>& names) {
        for (size_t i = 0; i < names.size(); ++i) places_.emplace(names[i], static_cast<int>(i));
    }
    int of(std::string_view name) const {  // -1: none is called so
        const auto at = places_.find(name);
        return at == places_.end() ? -1 : at->second;
    }

  private:
    std::unordered_map<std::string_view, int> places_;  // of the names, which outlive it
};

std::string listed(const std::vector<std::string>& names) {
    return shown(fmt::format("{}", fmt::join(names, ", ")));
}

/// Without a header the columns that are not made of others are the fields.
std::vector<std::string> names_by_order(const std::vector<ColumnSpec>& specs, const std::vector<std::string>& names) {
    std::vector<std::string> given;
    for (const ColumnSpec& spec : specs) {
        if (!spec.derived()) given.push_back(spec.name);
    }
    if (given.size() == names.size()) return given;
    fail(ErrorKind::kUsage,
         "data.columns: {} columns are described, but the records have {} field{}; without a header each field needs "
         "one, in their order (type = \"skip\" for those that are not read)",
         given.size(), names.size(), names.size() == 1 ? "" : "s");
}

/// Where every entry skips a column, all others are read, guessed as without a word.
std::vector<ColumnSpec> all_but(const std::vector<ColumnSpec>& skipped, const std::vector<std::string>& names,
                                const std::string& label_column) {
    const Places places(names);
    std::vector<bool> read(names.size(), true);
    for (const ColumnSpec& spec : skipped) {
        const int at = places.of(spec.name);
        if (at < 0) {
            fail(ErrorKind::kUsage, "{}: data.columns: {}: the data have no such column to skip; they have {}",
                 spec.origin, spec.name, listed(names));
        }
        read[static_cast<size_t>(at)] = false;
    }
    std::vector<std::string> left;
    for (size_t i = 0; i < names.size(); ++i) {
        if (read[i]) left.push_back(names[i]);
    }
    if (left.empty()) fail(ErrorKind::kUsage, "data.columns: every column is skipped");
    return guessed_specs(left, label_column);
}

class Resolver {
  public:
    Resolver(const std::vector<ColumnSpec>& specs, const std::vector<std::string>& names)
        : names_(names), fields_(names) {
        for (const ColumnSpec& spec : specs) specs_.emplace(spec.name, &spec);
    }

    TableColumn resolve(const ColumnSpec& spec) const {
        TableColumn column;
        column.spec = spec;
        if (!spec.derived()) {
            column.parts.push_back(part(spec, spec.name));
        } else {
            for (const std::string& name : spec.of) column.parts.push_back(part(spec, name));
        }
        if (spec.type == ColumnType::kBucket) column.parts.front().boundaries = spec.boundaries;
        return column;
    }

  private:
    /// `name` is a field, or a bucket column that a cross is made of.
    TableColumn::Part part(const ColumnSpec& reader, const std::string& name) const {
        TableColumn::Part part;
        part.strip = reader.strip;
        std::string field = name;
        const auto found = specs_.find(name);
        if (const ColumnSpec* other = found == specs_.end() ? nullptr : found->second) {
            if (part.strip.empty()) part.strip = other->strip;
            if (other != &reader && other->type == ColumnType::kBucket) part.boundaries = other->boundaries;
            if (other != &reader && other->derived()) {
                if (other->type != ColumnType::kBucket) {
                    fail(ErrorKind::kUsage,
                         "{}: data.columns: {}: of names {}, which is made of others itself; name a "
                         "column of the file or a bucket",
                         reader.origin, reader.name, name);
                }
                field = other->of.front();
            }
        }
        part.field = fields_.of(field);
        if (part.field < 0) {
            fail(ErrorKind::kUsage,
                 "{}: data.columns: {}: the data have no column {}; their first line has {} (is it a "
                 "header? else data.header = false)",
                 reader.origin, reader.name, field, listed(names_));
        }
        return part;
    }

    std::unordered_map<std::string_view, const ColumnSpec*> specs_;  // by their names, of which there are no two alike
    const std::vector<std::string>& names_;
    Places fields_;
};

bool is_label(const ColumnSpec& spec) {
    return spec.type == ColumnType::kLabel || spec.type == ColumnType::kTarget;
}

/// A column made of what is to be learned would tell the network the answer.
void refuse_label(const TableColumn& column, const TableColumn& label, const std::vector<std::string>& names) {
    for (const TableColumn::Part& part : column.parts) {
        if (part.field != label.parts.front().field) continue;
        fail(ErrorKind::kUsage,
             "{}: data.columns: {} ({}) is made of {}, which is the {}: the network would be told what it is to learn",
             column.spec.origin, column.spec.name, type_name(column.spec.type), names[static_cast<size_t>(part.field)],
             type_name(label.spec.type));
    }
}

/// Where none is declared: the column that data.label_column names, or the last of the file.
void choose_label(std::vector<ColumnSpec>& specs, const std::string& label_column) {
    const auto labels = std::count_if(specs.begin(), specs.end(), is_label);
    if (labels > 1) fail(ErrorKind::kUsage, "data.columns: {} columns are label or target, one is needed", labels);
    if (labels == 1) return;
    const auto is_it = [&](const ColumnSpec& spec) {
        return !spec.derived() && (label_column.empty() || spec.name == label_column);
    };
    const auto found = std::find_if(specs.rbegin(), specs.rend(), is_it);
    if (found != specs.rend() && found->guessed) {
        found->type = ColumnType::kLabel;
    } else if (!label_column.empty() && found == specs.rend()) {
        ColumnSpec& spec = specs.emplace_back();
        spec.name = label_column;
        spec.type = ColumnType::kLabel;
        spec.guessed = true;
    } else {
        fail(ErrorKind::kUsage, "data.columns: no column is label or target; give one type = \"label\" or \"target\"");
    }
}

}  // namespace

TableColumns::TableColumns(std::vector<ColumnSpec> specs, const std::vector<std::string>& names, bool header,
                           const std::string& label_column, const std::vector<std::string>& missing)
    : names_(names), missing_(missing) {
    if (specs.empty()) {
        specs = guessed_specs(names, label_column);
    } else if (std::all_of(specs.begin(), specs.end(), [](const auto& s) { return s.type == ColumnType::kSkip; })) {
        specs = all_but(specs, names, label_column);
    } else {
        if (!header) names_ = names_by_order(specs, names);
        choose_label(specs, label_column);
    }
    missing_.emplace_back();  // nothing between two separators is always missing
    const Resolver resolver(specs, names_);
    for (const ColumnSpec& spec : specs) {
        if (is_label(spec)) {
            label_ = resolver.resolve(spec);
        } else if (spec.type != ColumnType::kSkip) {
            columns_.push_back(resolver.resolve(spec));
        }
    }
    if (columns_.empty()) fail(ErrorKind::kUsage, "data.columns: no column but the label is read");
    for (const TableColumn& column : columns_) refuse_label(column, label_, names_);
}

std::vector<int> TableColumns::order_of(const std::vector<std::string>& header, const std::string& path) const {
    std::vector<int> order;
    std::vector<std::string> absent;
    const Places there(header);
    for (const std::string& name : names_) order.push_back(there.of(name));
    const auto need = [&](const TableColumn& column) {
        for (const TableColumn::Part& part : column.parts) {
            const auto field = static_cast<size_t>(part.field);
            if (order[field] < 0) absent.push_back(names_[field]);
        }
    };
    for (const TableColumn& column : columns_) need(column);
    need(label_);
    if (absent.empty()) return order;
    fail(ErrorKind::kData, "{}: its header lacks {} of the training data; it has {}", path, listed(absent),
         listed(header));
}

}  // namespace lockstep

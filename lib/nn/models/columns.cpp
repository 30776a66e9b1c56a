#include "nn/models/columns.hpp"

#include <array>
#include <cmath>

namespace lockstep {
namespace {

template <class Choose>
std::vector<int> chosen(const ModelSpec& spec, Choose choose) {
    std::vector<int> columns;
    const int count =
        spec.columns.empty() ? static_cast<int>(spec.input.elements()) : static_cast<int>(spec.columns.size());
    for (int i = 0; i < count; ++i) {
        if (spec.columns.empty() || choose(spec.columns[static_cast<std::size_t>(i)])) columns.push_back(i);
    }
    return columns;
}

}  // namespace

int expand_all(Builder& builder) {
    if (builder.spec().columns.empty()) return builder.at();
    return builder.expand("expand", chosen(builder.spec(), [](const Column&) { return true; }));
}

std::vector<int> wide_columns(const ModelSpec& spec) {
    return chosen(spec, [](const Column& column) { return column.wide; });
}

std::vector<int> deep_columns(const ModelSpec& spec) {
    return chosen(spec, [](const Column& column) { return column.deep; });
}

int embed_columns(Builder& builder, const std::vector<int>& columns) {
    const ModelSpec& spec = builder.spec();
    if (spec.columns.empty()) return builder.at();  // plain numbers
    const int samples = builder.at();
    std::vector<int> plain, parts;
    for (const int i : columns) {
        if (spec.columns[static_cast<std::size_t>(i)].embedding == 0) plain.push_back(i);
    }
    if (!plain.empty()) parts.push_back(builder.expand("expand", plain));
    for (const int i : columns) {
        const Column& column = spec.columns[static_cast<std::size_t>(i)];
        if (column.embedding == 0) continue;
        builder.continue_from(samples);
        parts.push_back(embed_column(builder, "embedding." + column.name, i, column.embedding));
    }
    return parts.size() == 1 ? parts[0] : builder.concat("features", parts);
}

int embed_column(Builder& builder, const std::string& name, int column, int width, std::optional<double> deviation) {
    const auto& columns = builder.spec().columns;
    const bool known = static_cast<std::size_t>(column) < columns.size();
    if (!known || columns[static_cast<std::size_t>(column)].categories == 0) {
        builder.refuse(name,
                       fmt::format("embeds column {}, which has no categories",
                                   known ? columns[static_cast<std::size_t>(column)].name : std::to_string(column)));
    }
    const std::array one{column};
    builder.expand(name + ".one_hot", one);
    // As if each category were looked up: of its one-hot row all inputs but one are 0.
    return builder.dense(
        name, width,
        {.start = WeightStart::kGivenTruncated, .deviation = deviation.value_or(1 / std::sqrt(width)), .bias = false});
}

}  // namespace lockstep

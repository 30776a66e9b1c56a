// How the columns of a table enter a network.
#pragma once

#include <optional>
#include <vector>

#include "nn/builder.hpp"

namespace lockstep {

/// All columns, categories as one-hot; nothing where there are none.
int expand_all(Builder& builder);

/// What the linear part and the deep part of wide & deep read; all columns of samples that declare none.
std::vector<int> wide_columns(const ModelSpec& spec);
std::vector<int> deep_columns(const ModelSpec& spec);

/// The deep part's input, on the samples: the columns without an embedding as numbers and one-hot, then each embedding
/// in the order of its column, beside each other.
int embed_columns(Builder& builder, const std::vector<int>& columns);

/// A column's categories to `width` numbers each, without bias: its one-hot times a matrix "<name>.weight", which
/// starts with a standard deviation of 1 / sqrt(width) or the one given.
int embed_column(Builder& builder, const std::string& name, int column, int width,
                 std::optional<double> deviation = std::nullopt);

}  // namespace lockstep

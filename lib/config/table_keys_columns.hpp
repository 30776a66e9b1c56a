// What one [[data.columns]] may hold. Part of the key table: included by keys_data.hpp alone.
#pragma once

#include "config/key.hpp"
#include "config/key_ranges.hpp"

namespace lockstep {

inline constexpr TableKey kColumnKeys[] = {
    {.name = "name",
     .type = KeyType::kString,
     .doc = "the column's name, as in the header where there is one; without one those that are not made of others "
            "name the fields in their order",
     .required = true},
    {.name = "type",
     .type = KeyType::kString,
     .doc = "numeric; categorical: a text; bucket: a number cut at `boundaries`; cross: the columns of `of` together; "
            "label: the class to be learned; target: the number to be learned; skip: not read; not given: guessed from "
            "the training data",
     .choices = "guess|numeric|categorical|bucket|cross|label|target|skip"},
    {.name = "of",
     .type = KeyType::kStrings,
     .doc = "bucket, cross, or a second reading: the columns that it is made of"},
    {.name = "vocabulary",
     .type = KeyType::kStrings,
     .doc = "categorical, label: its values, numbered from 0; not given: those of the training data in byte order"},
    {.name = "hash",
     .type = KeyType::kInteger,
     .doc = "categorical, cross: number = XXH3 (64 bits, seed 0) of the text modulo this, instead of a vocabulary",
     .range = {.least = 1, .most = 1 << 24}},
    {.name = "boundaries",
     .type = KeyType::kNumbers,
     .doc = "bucket: number = how many of these the value reaches; rising"},
    {.name = "scale",
     .type = KeyType::kString,
     .doc = "numeric, target: standard: mean and std are those of the training data",
     .choices = "none|standard"},
    {.name = "mean", .type = KeyType::kNumber, .doc = "numeric, target: subtracted from the value"},
    {.name = "std",
     .type = KeyType::kNumber,
     .doc = "numeric, target: what the difference is divided by",
     .range = kPositive},
    {.name = "missing",
     .type = KeyType::kString,
     .doc = "what a missing value is: of a number the mean of the training data, or refused; of a category one of its "
            "own, the last (that is so where the training data have any), none, or refused",
     .choices = "mean|own|none|refuse"},
    {.name = "fill", .type = KeyType::kNumber, .doc = "numeric, bucket: the number that stands for a missing one"},
    {.name = "strip", .type = KeyType::kString, .doc = "characters that are taken off the end of a field"},
    {.name = "embedding",
     .type = KeyType::kInteger,
     .doc = "width of its embedding in the deep part of wide_deep; 0: one-hot",
     .range = kCountOrZero},
    {.name = "wide", .type = KeyType::kBool, .doc = "whether the linear part of wide_deep reads it"},
    {.name = "deep",
     .type = KeyType::kBool,
     .doc = "whether the deep part does; not given: all but buckets and crosses"},
};

}  // namespace lockstep

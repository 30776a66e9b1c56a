// What one [[data.columns]] may hold. Part of the key table: included by keys_data.hpp alone.
#pragma once

#include "config/key.hpp"
#include "config/key_ranges.hpp"

namespace lockstep {

inline constexpr TableKey kColumnKeys[] = {
    {.name = "name",
     .type = KeyType::kString,
     .doc = "the column's name, as in the header where there is one",
     .required = true},
    {.name = "kind",
     .type = KeyType::kString,
     .doc =
         "number; category: one of `vocabulary`, or hashed to `buckets`; bucket: a number cut at `boundaries`; cross: "
         "the columns of `from` together, hashed to `buckets`; label: what is learned; skip: not read",
     .choices = "number|category|bucket|cross|label|skip",
     .required = true},
    {.name = "vocabulary", .type = KeyType::kStrings, .doc = "category, label: its values, numbered from 0"},
    {.name = "buckets", .type = KeyType::kInteger, .doc = "category, cross: number of hash buckets", .range = kCount},
    {.name = "boundaries", .type = KeyType::kNumbers, .doc = "bucket: where one ends and the next begins, rising"},
    {.name = "from", .type = KeyType::kStrings, .doc = "bucket, cross: the columns that it is made from"},
    {.name = "embedding",
     .type = KeyType::kInteger,
     .doc = "width of its embedding in the deep part of wide_deep; 0: one-hot",
     .range = kCountOrZero},
    {.name = "wide", .type = KeyType::kBool, .doc = "whether the linear part of wide_deep reads it"},
    {.name = "deep", .type = KeyType::kBool, .doc = "whether the deep part does"},
};

}  // namespace lockstep

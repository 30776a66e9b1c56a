// Two tensor files of one step side by side: how many elements differ, by how much, and which is the first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.hpp"

namespace lockstep {

/// Distances are counted in ulp: how many fp32 numbers lie between the two, plus 1; +0 and -0 are 1 apart.
inline constexpr std::array<const char*, 6> kUlpBins{"1", "2-3", "4-15", "16-255", "256-65535", "more"};

struct ElementDiff {
    int64_t element = 0;  // in the file's order
    std::vector<int64_t> index;
    float left = 0, right = 0;
};

struct TensorDiff {
    std::string name;
    int64_t elements = 0;
    int64_t differ = 0;                          // in any bit
    double max_abs = 0;                          // largest |left - right| of finite values
    std::array<int64_t, kUlpBins.size()> ulp{};  // of those that differ and are numbers
    int64_t not_numbers = 0;                     // differ, and one of the two is a NaN
    std::optional<ElementDiff> first;
};

struct WeightsDiff {
    int64_t step = 0;
    std::string where;                // the file that both have, relative to the run directory
    std::vector<TensorDiff> tensors;  // all of them, in the file's order
    std::vector<std::string> unlike;  // tensors of one side alone, or of other shapes
};

/// Distance of two fp32 numbers that are not NaN.
uint64_t ulp_distance(float left, float right);

/// Appends to `into`.
void diff_tensors(const SafetensorsFile& left, const SafetensorsFile& right, WeightsDiff& into);

}  // namespace lockstep

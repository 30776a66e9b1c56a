#include "train/tensor_diff.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace lockstep {
namespace {

float float_at(const TensorView& tensor, int64_t element) {
    float value = 0;
    std::memcpy(&value, tensor.bytes.data() + static_cast<std::size_t>(element) * sizeof(float), sizeof value);
    return value;
}

/// Whole numbers in the order of the floats, without a gap.
int64_t rank_of(float value) {
    const auto bits = static_cast<int64_t>(std::bit_cast<uint32_t>(value));
    constexpr int64_t kSign = int64_t{1} << 31;
    return bits < kSign ? bits : kSign - 1 - bits;
}

std::size_t bin_of(uint64_t distance) {
    constexpr std::array<uint64_t, kUlpBins.size() - 1> kEnds{2, 4, 16, 256, 65536};
    return static_cast<std::size_t>(std::upper_bound(kEnds.begin(), kEnds.end(), distance) - kEnds.begin());
}

std::vector<int64_t> index_of(int64_t element, const std::vector<int64_t>& shape) {
    std::vector<int64_t> index(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        index[d] = element % shape[d];
        element /= shape[d];
    }
    return index;
}

TensorDiff diff_tensor(const TensorView& left, const TensorView& right) {
    TensorDiff diff;
    diff.name = left.name;
    diff.elements = static_cast<int64_t>(left.bytes.size() / sizeof(float));
    for (int64_t i = 0; i < diff.elements; ++i) {
        const float l = float_at(left, i);
        const float r = float_at(right, i);
        if (std::bit_cast<uint32_t>(l) == std::bit_cast<uint32_t>(r)) continue;
        if (diff.differ++ == 0) diff.first = {i, index_of(i, left.shape), l, r};
        if (std::isnan(l) || std::isnan(r)) {
            ++diff.not_numbers;
            continue;
        }
        ++diff.ulp[bin_of(ulp_distance(l, r))];
        if (std::isfinite(l) && std::isfinite(r))
            diff.max_abs = std::max(diff.max_abs, std::abs(double{l} - double{r}));
    }
    return diff;
}

}  // namespace

uint64_t ulp_distance(float left, float right) {
    return static_cast<uint64_t>(std::abs(rank_of(left) - rank_of(right)));
}

void diff_tensors(const SafetensorsFile& left, const SafetensorsFile& right, WeightsDiff& into) {
    for (const TensorView& tensor : left.tensors()) {
        const TensorView* other = right.find(tensor.name);
        if (other == nullptr || other->shape != tensor.shape || other->dtype != "F32" || tensor.dtype != "F32") {
            into.unlike.push_back(tensor.name);
        } else {
            into.tensors.push_back(diff_tensor(tensor, *other));
        }
    }
    for (const TensorView& tensor : right.tensors()) {
        if (left.find(tensor.name) == nullptr) into.unlike.push_back(tensor.name);
    }
}

}  // namespace lockstep

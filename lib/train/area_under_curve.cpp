// The AUC of evaluator.hpp, by sorting the scores once and counting pairs in integers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "train/evaluator.hpp"

namespace lockstep {

double area_under_curve(std::span<const float> scores, std::span<const int32_t> labels) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    // A NaN is neither above, below nor level with another score, and no sorting bears that.
    if (std::any_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); })) return kNone;
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
    // Ascending: a positive beats every negative of a lower score and ties with those of its own.
    uint64_t twice = 0;  // fits: samples are far fewer than 2^31
    int64_t negatives_below = 0;
    int64_t positives = 0;
    for (std::size_t i = 0; i < order.size();) {
        std::size_t j = i;
        int64_t p = 0;
        int64_t n = 0;
        for (; j < order.size() && scores[order[j]] == scores[order[i]]; ++j) (labels[order[j]] == 1 ? p : n) += 1;
        twice += static_cast<uint64_t>(p) * static_cast<uint64_t>(2 * negatives_below + n);
        negatives_below += n;
        positives += p;
        i = j;
    }
    if (positives == 0 || negatives_below == 0) return kNone;
    return static_cast<double>(twice) / (2.0 * static_cast<double>(positives) * static_cast<double>(negatives_below));
}

}  // namespace lockstep

// The best value of a metric so far, and how long ago that was: what a plateau of the learning rate, early stopping and
// the best checkpoint go by. A function of the evaluations alone, so that all ranks and every resume agree.
#pragma once

#include <cmath>
#include <cstdint>

namespace lockstep {

struct Improvement {
    double best = 0;        // meaningless before the first evaluation that was a number
    int64_t best_step = 0;  // update after which it was seen; 0: none yet
    int64_t since = 0;      // evaluations since then that were not better

    /// Whether `value` is strictly better than all before it. What is not finite is never better, the first that is
    /// always.
    bool observe(double value, int64_t step, bool higher_is_better) {
        const bool better =
            std::isfinite(value) && (best_step == 0 || (higher_is_better ? value > best : value < best));
        if (!better) {
            ++since;
            return false;
        }
        best = value;
        best_step = step;
        since = 0;
        return true;
    }
    bool operator==(const Improvement&) const = default;
};

}  // namespace lockstep

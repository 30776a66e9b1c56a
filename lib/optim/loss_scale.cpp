#include "optim/loss_scale.hpp"

#include <cmath>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr float kMost = 16777216;  // 2^24: beyond it no gradient is worth rescuing

}  // namespace

LossScale::LossScale(const LossScaleRules& rules) : rules_(rules), state_{rules.initial, 0, 0} {
    int exponent = 0;
    if (!(rules.initial >= 1 && rules.initial <= kMost && std::frexp(rules.initial, &exponent) == 0.5F)) {
        fail(ErrorKind::kUsage, "a loss scale must be a power of two from 1 to 2^24, got {}", rules.initial);
    }
}

void LossScale::was_finite() {
    if (++state_.good_steps < rules_.good_steps) return;
    state_.good_steps = 0;
    if (state_.scale < kMost) state_.scale *= 2;
}

bool LossScale::skip() {
    if (state_.scale <= 1) return false;
    state_.scale /= 2;
    state_.good_steps = 0;
    ++state_.skipped;
    return true;
}

}  // namespace lockstep

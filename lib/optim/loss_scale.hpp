// Dynamic loss scaling, for gradients that pass through a narrow type (fp16): d loss / d logits is multiplied by a
// power of two before it goes back, the total is divided by it. A total that is not finite then may be the scale's
// fault: the update is left out and the scale halved, until after a row of good steps it is doubled again. Every rank
// sees the same total, so all decide alike.
#pragma once

#include <cstdint>

namespace lockstep {

struct LossScaleRules {
    float initial = 65536;      // a power of two, from 1 to 2^24
    int64_t good_steps = 2000;  // in a row, before it is doubled
};

/// What a checkpoint keeps of it.
struct LossScaleState {
    float scale = 1;
    int64_t good_steps = 0;  // since it last changed
    int64_t skipped = 0;     // updates left out, since the first step of the run
    bool operator==(const LossScaleState&) const = default;
};

class LossScale {
  public:
    /// Throws kUsage for an initial scale that is no power of two in range.
    explicit LossScale(const LossScaleRules& rules);

    const LossScaleState& state() const { return state_; }
    void restore(const LossScaleState& state) { state_ = state; }
    float value() const { return state_.scale; }
    /// After an update that was done.
    void was_finite();
    /// Whether a gradient that is not finite, behind a finite loss, may be the scale's fault: then the update counts as
    /// skipped, and the scale is halved. False at a scale of 1: the gradient itself is not finite.
    bool skip();

  private:
    LossScaleRules rules_;
    LossScaleState state_;
};

}  // namespace lockstep

// A planted fault: one bit of one rank's weights flips after one update, as a bad memory cell would have it. A check
// that has never been seen to fail proves nothing; this is how the checks of replicas and of worlds are seen to.
#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.hpp"
#include "nn/parameters.hpp"
#include "train/step_watcher.hpp"

namespace lockstep {

/// Bit `bit` (0 = the lowest of the mantissa, 31 = the sign) of element 0 of the first weight tensor of rank `rank`
/// flips right after update `step`.
struct Fault {
    int rank = 0;
    int64_t step = 0;
    int bit = 0;
    bool operator==(const Fault&) const = default;
};

/// Reads "rank:R,step:S,bit:B", in any order. Throws kUsage, beginning with `where` (the option or variable it stands
/// in), unless each is there once and is a whole number: R >= 0, S >= 1, 0 <= B <= 31.
Fault parse_fault(const std::string& text, const std::string& where);

/// Throws kUsage where no such rank or step is there to fail: a fault that is never planted looks like a check passed.
void check_fault(const Fault& fault, int ranks, int64_t steps, const std::string& where);

/// Flips the bit when its time has come.
class FaultPlanter final : public StepWatcher {
  public:
    /// On the rank of the fault; on any other rank it does nothing.
    FaultPlanter(const Fault& fault, int rank, const ParameterTable& parameters, Backend& backend);
    void updated(const StepOutcome& outcome, float* weights) override;

  private:
    Fault fault_;
    bool here_;
    int64_t element_;  // in the flat arrays
    Backend& backend_;
};

}  // namespace lockstep

#include "backend/dropout_mask.hpp"

#include <cmath>

#include "core/error.hpp"

namespace lockstep {

DropoutMask dropout_mask(const DropoutKey& key) {
    const double p = key.probability;
    if (!(p >= 0.0 && p < 1.0)) fail(ErrorKind::kUsage, "dropout probability {} is not in [0, 1)", p);
    return {RandomStream(key.seed, Purpose::kDropout, key.layer, key.epoch).key(),
            static_cast<uint32_t>(std::floor(p * 4294967296.0)), static_cast<float>(1.0 / (1.0 - p))};
}

}  // namespace lockstep

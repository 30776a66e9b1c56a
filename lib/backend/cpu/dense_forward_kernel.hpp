// Dense forward with samples on the vector lanes: W is read where it lies, as the broadcast operand, and only the small
// X is packed. The best way for a batch of 16 to 255 samples, where packing W for one use would cost more than it
// gives.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_backend.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

struct DenseForwardKernels {
    int lanes = 0;
    int tile_rows = 0;  // most output features of a tile

    /// y [samples][out] for output features `outputs`, all samples. `x`: panels of 2 lanes of samples, [panel][in][2
    /// lanes]. `partial`: (outputs rounded up to tile_rows) * panels * 2 lanes floats, 64-byte aligned.
    void (*run)(const float* w, int64_t in, int64_t out, IndexRange outputs, const float* x, int64_t samples,
                const float* bias, bool relu, float* y, float* partial) = nullptr;
};

/// Empty for kScalar.
const DenseForwardKernels& dense_forward_kernels(Isa isa);

}  // namespace lockstep

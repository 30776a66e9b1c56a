// Dense forward with samples on the vector lanes: W is read where it lies, as the broadcast operand, and only the small
// X is packed. The best way for a batch of 16 to 255 samples, where packing W for one use would cost more than it
// gives.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/cpu/gemm_plan.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

struct DenseForwardKernels {
    int (*panel_width)(int samples) = nullptr;
    GemmTileRows tile_rows;  // most output features of a tile, for a number of samples

    /// y [samples][out] for output features `outputs`, all samples. `x`: panels of samples, [panel][in][panel width].
    /// `partial`: outputs rounded up to whole tiles times samples rounded up to whole panels, 64-byte aligned.
    void (*run)(const float* w, int64_t in, int64_t out, IndexRange outputs, const float* x, int64_t samples,
                const float* bias, bool relu, float* y, float* partial) = nullptr;
};

/// Empty for kScalar.
const DenseForwardKernels& dense_forward_kernels(Isa isa);

}  // namespace lockstep

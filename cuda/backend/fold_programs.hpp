// Fold programs on the device: each is sent once, when it is first met, and found again by its content.
#pragma once

#include <memory>
#include <vector>

#include "core/canonical_tree.hpp"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/backend/host_copies.hpp"
#include "cuda/kernels/fold_rows.h"

namespace lockstep {

/// Leaves of one root: [first, first + count) of a program.
struct FoldRoot {
    int first, count;
};

struct DeviceFold {
    std::vector<FoldLeaf> leaves;  // what it is found by
    std::vector<FoldRoot> roots;
    std::unique_ptr<Buffer> memory;
    const FoldLeaf* device() const { return reinterpret_cast<const FoldLeaf*>(memory->data()); }
};

class FoldPrograms {
  public:
    FoldPrograms(CudaContext& context, HostCopies& copies) : context_(context), copies_(copies) {}
    /// Throws kRuntime for a program that needs more values at once than a kernel keeps.
    const DeviceFold& find(const FoldProgram& fold);

  private:
    const DeviceFold& send(const FoldProgram& fold);

    CudaContext& context_;
    HostCopies& copies_;
    std::vector<std::unique_ptr<DeviceFold>> known_;  // a run has a few: one for each size of batch
};

}  // namespace lockstep

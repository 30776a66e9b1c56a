// Which GPU each rank takes and what carries sums between them: decided alike on every rank, from what all have told.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// What a rank tells the others.
struct RankDevice {
    std::string host;
    bool gpu = false;                  // it computes on a GPU
    std::vector<std::string> visible;  // PCI addresses of the GPUs that it sees and may use, in its order
    bool nccl = false;                 // its build has NCCL
};

struct GpuChoice {
    int device = -1;      // among the rank's `visible`; -1: the CPU
    bool nccl = false;    // else through host memory
    std::string warning;  // for people, or ""
};

/// The choice of `rank`. `transport` is device.transport. Ranks of a host that see the same GPUs take them in turn; a
/// rank that sees one GPU takes that. NCCL needs a GPU for each rank and no rank on a CPU: with "auto" host memory is
/// used instead, with a warning where two ranks share a GPU; asked for by name it is refused (kUsage). Also warned of
/// are ranks on CPUs beside others on GPUs.
GpuChoice choose_gpu(std::span<const RankDevice> ranks, int rank, const std::string& transport);

}  // namespace lockstep

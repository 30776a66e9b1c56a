// How many processes the launchers of a pasted command line start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "explain/command_line.hpp"

namespace lockstep {

struct Launch {
    std::string launcher;              // the innermost that starts processes: "srun"; "" where there is none
    std::optional<int64_t> processes;  // of the whole job, where the line says so
    std::optional<int64_t> nodes;      // what the number of processes was counted from
    std::string words;                 // "--nproc_per_node=4 x --nnodes=2"
    std::string missing;               // what the launcher has to be told: "deepspeed --num_gpus=P"
};

/// Takes the flags that say so: of torchrun, horovodrun, mpirun, srun, accelerate launch and deepspeed, each within the
/// one in front of it. Where a line has no launcher at all, its flags alone may hold such flags. Throws kUsage where a
/// number is none.
Launch read_launch(CommandLine& line);

}  // namespace lockstep

// A pasted command line, taken apart: what starts the processes ("srun -N 2", "torchrun --nproc_per_node=4",
// "python -u -m"), then the script and its own flags. A launcher's flag behind the script's name is the script's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/flag_list.hpp"

namespace lockstep {

enum class LauncherKind { kTorchrun, kHorovodrun, kMpirun, kSrun, kAccelerate, kDeepspeed, kGcloud, kPython, kOther };

struct Launcher {
    LauncherKind kind = LauncherKind::kOther;
    std::string name;  // as it stood there: "srun"
    FlagList flags;
};

struct CommandLine {
    std::vector<Launcher> launchers;  // outermost first
    std::string script;               // "train.py", "package.train"; "" where the flags stand alone
    FlagList flags;                   // the script's

    /// What it is called, without its folder: "train.py".
    std::string script_name() const { return script.substr(script.find_last_of('/') + 1); }
    /// All flags, those of the script last.
    std::vector<FlagList::Flag> all_flags() const;
    /// The flags of the launcher, where there is one of this kind: to take from.
    FlagList* flags_of(LauncherKind kind);
};

/// `words`: of the line, with or without what starts it. Throws kUsage where one is no UTF-8, which no config can hold.
CommandLine split_command_line(std::span<const std::string> words, const FlagSpelling& spelling = {});

}  // namespace lockstep

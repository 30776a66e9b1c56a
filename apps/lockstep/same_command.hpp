// One launch, one command line: ranks that were given other commands, or another --out or --resume, would wait for each
// other in vain or write two runs.
#pragma once

#include "comm/communicator.hpp"
#include "commands.hpp"

namespace lockstep {

/// The chosen command and the options that all ranks must be given alike: all but what each rank may have for itself
/// (config layers, which are compared key by key, and the looks of the output).
std::vector<std::pair<std::string, std::string>> options_to_compare(const CLI::App& app);

/// Throws SharedError: a fault of the command line on any rank, or the first option that differs. Collective.
void check_same_command(Communicator& comm, const Invocation& invocation);

}  // namespace lockstep

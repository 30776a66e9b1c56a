// The halves of the translation of torchrun's and PyTorch's command lines.
#pragma once

#include <cstdint>

#include "explain/config_import.hpp"

namespace lockstep {

/// The learning rate's schedule, of a job of so many epochs.
void import_ddp_rates(FlagList& flags, Imported& config, double lr, int64_t epochs);

/// --opt with its numbers; the learning rate, which it returns, is for `whole`: "these", "all processes'" samples.
double import_ddp_optimizer(FlagList& flags, Imported& config, std::string_view whole);

}  // namespace lockstep

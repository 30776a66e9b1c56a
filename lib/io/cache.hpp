// Copies of what is costly to make from a file (a packed one, unpacked), kept on the disk from run to run under a name
// that says from which contents. The ranks of a host share them: the first makes one, the others wait for it.
#pragma once

#include <string>

#include "core/function_ref.hpp"

namespace lockstep {

/// The copy `name` in `folder` (empty: a folder of this user in the system's temporary folder), made by make(path) if
/// it is not there yet, or not as it was made: its size and a hash of its contents lie beside it in NAME.sum, and are
/// compared at each call. Complete or absent: made under another name and renamed. kRuntime where the folder cannot be
/// written.
std::string cached_copy(const std::string& folder, const std::string& name,
                        FunctionRef<void(const std::string& path)> make);

}  // namespace lockstep

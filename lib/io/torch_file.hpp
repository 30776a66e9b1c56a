// Files of torch.save, which hold a Python pickle: no program but Python reads them safely, so Lockstep reads none.
// They are told apart from other files to say so, and how to make one that it reads.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

inline constexpr std::size_t kTorchStart = 512;  // bytes of a file that tell

/// Whether it begins as what torch.save writes: a zip whose first member is its pickle (PyTorch 1.6 and later), or the
/// pickle itself (before).
bool is_torch_file(std::span<const std::byte> start);

/// What to do with the one at `path`, as part of a line.
std::string torch_file_advice(const std::string& path);

}  // namespace lockstep

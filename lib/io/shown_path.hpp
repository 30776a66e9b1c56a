// Names of files in messages. A name may hold a line end or any other byte but a zero: shown as it is, it would make
// several lines of one, or move the cursor of a terminal.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// The path with \x0a in place of a line end, and so for every control character.
std::string shown_path(std::string_view path);

/// Whether shown_path changes it.
bool is_odd_path(std::string_view path);

}  // namespace lockstep

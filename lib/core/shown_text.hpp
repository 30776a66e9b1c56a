// Text for people that may hold names from elsewhere: of files, tensors, columns, hosts. A control character among them
// would move the cursor of a terminal, colour it or set its title: it is shown as \x1b and the like instead.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

enum class LineEnds { kKept, kEscaped };

/// The text with \x1b in place of an escape, and so for every control character (also those of 0x80 to 0x9f, which
/// UTF-8 writes as two bytes); line ends may stay what they are.
std::string shown_text(std::string_view text, LineEnds ends = LineEnds::kKept);

}  // namespace lockstep

// JSON from a disk may nest lists and objects a million deep. The parser bears that; what copies, compares or prints
// the result calls itself for each level, and ends the stack.
#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"

namespace lockstep {

/// kData, starting with `where`, if the text nests deeper than anything that Lockstep writes.
inline void check_json_depth(std::string_view text, const std::string& where) {
    constexpr int kDeepest = 64;
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') {
            quoted = !quoted;
        } else if (quoted) {
            if (c == '\\') ++i;
        } else if (c == '[' || c == '{') {
            if (++depth > kDeepest) {
                fail(ErrorKind::kData, "{}: damaged: lists or objects nest more than {} deep", where, kDeepest);
            }
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
}

}  // namespace lockstep

#include "io/shown_path.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

std::string shown_path(std::string_view path) {
    std::string shown;
    for (const char c : path) {
        if (is_control(c)) {
            shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
            shown += c;
        }
    }
    return shown;
}

bool is_odd_path(std::string_view path) {
    return std::any_of(path.begin(), path.end(), is_control);
}

}  // namespace lockstep

#include "io/shown_path.hpp"

#include "core/shown_text.hpp"

namespace lockstep {

std::string shown_path(std::string_view path) {
    return shown_text(path, LineEnds::kEscaped);
}

bool is_odd_path(std::string_view path) {
    return shown_path(path) != path;
}

}  // namespace lockstep

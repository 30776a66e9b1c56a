#include "core/shown_text.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

}  // namespace

std::string shown_text(std::string_view text, LineEnds ends) {
    constexpr unsigned char kLeadOfC1 = 0xc2;
    std::string shown;
    shown.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const unsigned char byte = byte_at(text, i), next = byte_at(text, i + 1);
        const bool line_end = byte == '\n' && ends == LineEnds::kKept;
        if (byte == kLeadOfC1 && next >= 0x80 && next <= 0x9f) {
            shown += fmt::format("\\x{:02x}", next);
            ++i;
        } else if ((byte < 0x20 && !line_end) || byte == 0x7f) {
            shown += fmt::format("\\x{:02x}", byte);
        } else {
            shown += text[i];
        }
    }
    return shown;
}

}  // namespace lockstep

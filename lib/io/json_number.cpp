#include "io/json_number.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/error.hpp"

namespace lockstep {
namespace {

template <class Real>
std::string shortest(Real value) {
    if (!std::isfinite(value)) return "null";  // JSON has no word for them
    std::array<char, 64> buffer;
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    std::string text(buffer.data(), result.ptr);
    // Readers in typed languages take "1" for an integer; "1e+20" needs nothing, and is valid JSON as it stands.
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

// The length of the well-formed UTF-8 sequence at the start of `text` (table 3-7 of the Unicode standard), or 0.
size_t utf8_length(std::string_view text) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto continues = [&](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
        return byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        const bool second = continues(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
        return second && continues(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        const bool second = continues(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
        return second && continues(2) && continues(3) ? 4 : 0;
    }
    return 0;
}

void append_escaped(std::string& out, char letter) {
    switch (letter) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\b':
            out += "\\b";
            return;
        case '\f':
            out += "\\f";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            break;
    }
    if (static_cast<unsigned char>(letter) < 0x20) {
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    } else {
        out += letter;
    }
}

}  // namespace

std::string json_number(float value) {
    return shortest(value);
}
std::string json_number(double value) {
    return shortest(value);
}

std::string json_string(const std::string& text) {
    constexpr const char* kReplacement = "\xef\xbf\xbd";  // U+FFFD: file names may hold bytes that are no text
    std::string out = "\"";
    for (size_t i = 0; i < text.size();) {
        const size_t length = utf8_length(std::string_view(text).substr(i));
        if (length == 0) {
            out += kReplacement;
        } else if (length == 1) {
            append_escaped(out, text[i]);
        } else {
            out.append(text, i, length);
        }
        i += length == 0 ? 1 : length;
    }
    return out + '"';
}

}  // namespace lockstep

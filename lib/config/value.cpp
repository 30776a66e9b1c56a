#include "config/value.hpp"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {
namespace {

enum class Spelling { kToml, kJson };

std::string number(double value) {
    std::string text = fmt::format("{}", value);
    if (!std::isfinite(value)) return text;  // only ever in a message
    const size_t exponent = text.find('e');
    if (exponent == std::string::npos) {
        return text.find('.') == std::string::npos ? text + ".0" : text;  // a float stays a float when it is read again
    }
    // "1e-08" and "1e+20" are right but not what anybody writes.
    size_t digits = exponent + 1;
    if (text[digits] == '+') text.erase(digits, 1);
    if (text[digits] == '-') ++digits;
    while (text[digits] == '0') text.erase(digits, 1);
    return text;
}

std::string escaped(std::string_view text, bool quotes) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const auto byte = static_cast<unsigned char>(c);
        const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
        if (byte == 0xc2 && next >= 0x80 && next <= 0x9f) {  // a control character, too: in UTF-8 U+0080 to U+009F
            out += fmt::format("\\u{:04x}", next);
            ++i;
        } else if (byte == '\n') {
            out += "\\n";
        } else if (byte == '\t') {
            out += "\\t";
        } else if (byte < 0x20 || byte == 0x7f) {
            out += fmt::format("\\u{:04x}", byte);
        } else {
            if (quotes && (c == '"' || c == '\\')) out += '\\';
            out += c;
        }
    }
    return out;
}

template <class Items, class Print>
std::string list(const Items& items, Print print) {
    std::vector<std::string> texts;
    for (const auto& item : items) texts.push_back(print(item));
    return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string paths(const DataPaths& value, Spelling spelling) {
    if (value.images.empty() && value.labels.empty())
        return list(value.paths, [](const auto& p) { return in_quotes(p); });
    const bool toml = spelling == Spelling::kToml;
    std::vector<std::string> entries;
    for (const auto& [name, path] : {std::pair("images", value.images), std::pair("labels", value.labels)}) {
        if (!path.empty())
            entries.push_back(toml ? fmt::format("{} = {}", name, in_quotes(path))
                                   : fmt::format("\"{}\": {}", name, in_quotes(path)));
    }
    return toml ? fmt::format("{{ {} }}", fmt::join(entries, ", ")) : fmt::format("{{{}}}", fmt::join(entries, ", "));
}

Value widened(const ConfigTable::Value& value) {
    return std::visit([](const auto& alternative) { return Value(alternative); }, value);
}

std::string table_text(const ConfigTable& table, Spelling spelling) {
    if (spelling == Spelling::kToml) return fmt::format("{{ {} }}", fmt::join(toml_entries(table), ", "));
    std::vector<std::string> entries;
    for (const auto& [name, value] : table.entries)
        entries.push_back(fmt::format("{}: {}", in_quotes(name), json_text(widened(value))));
    return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

struct Printer {
    Spelling spelling;
    std::string operator()(std::monostate) const { return spelling == Spelling::kToml ? "unset" : "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return number(value); }
    std::string operator()(const std::string& value) const { return in_quotes(value); }
    std::string operator()(const std::vector<int64_t>& value) const {
        return list(value, [](int64_t i) { return fmt::format("{}", i); });
    }
    std::string operator()(const std::vector<double>& value) const { return list(value, number); }
    std::string operator()(const DataPaths& value) const { return paths(value, spelling); }
    std::string operator()(const std::vector<std::string>& value) const { return list(value, in_quotes); }
    std::string operator()(const std::vector<ConfigTable>& value) const {
        return list(value, [this](const ConfigTable& table) { return table_text(table, spelling); });
    }
};

}  // namespace

std::string toml_text(const Value& value) {
    return std::visit(Printer{Spelling::kToml}, value);
}
std::string json_text(const Value& value) {
    return std::visit(Printer{Spelling::kJson}, value);
}
std::vector<std::string> toml_entries(const ConfigTable& table) {
    std::vector<std::string> entries;
    for (const auto& [name, value] : table.entries)
        entries.push_back(fmt::format("{} = {}", name, toml_text(widened(value))));
    return entries;
}
std::string in_quotes(std::string_view text) {
    return fmt::format("\"{}\"", escaped(text, true));
}
std::string one_line(std::string_view text) {
    return escaped(text, false);
}

bool is_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const size_t length = lead < 0x80   ? 1
                              : lead < 0xc2 ? 0
                              : lead < 0xe0 ? 2
                              : lead < 0xf0 ? 3
                              : lead < 0xf5 ? 4
                                            : 0;
        if (length == 0 || i + length > text.size()) return false;
        for (size_t k = 1; k < length; ++k) {
            if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
        }
        // Overlong forms, surrogates and code points past U+10FFFF hide in the second byte.
        const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
        if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
            (lead == 0xf4 && second > 0x8f)) {
            return false;
        }
        i += length;
    }
    return true;
}

}  // namespace lockstep

#include "train/text_table.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// The length of a cell on a terminal; "…" is one character of three bytes.
std::size_t width_of(const std::string& cell) {
    return static_cast<std::size_t>(
        std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string TextTable::text() const {
    const bool words = rows_.front().back().empty();
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
    }
    std::string text;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            const bool left = words && c + 1 == row.size();
            line += std::string(left ? 0 : widths[c] - width_of(row[c]), ' ') + row[c] + "  ";
        }
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
}

}  // namespace lockstep

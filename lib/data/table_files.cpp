#include "data/table_files.hpp"

#include <algorithm>

#include "data/table_data.hpp"
#include "io/source_files.hpp"

namespace lockstep {

TableFiles::TableFiles(const Config& config, const DataPaths& paths, const char* key, int64_t memory) {
    for (const std::string& path : source_files(paths.paths, key)) {
        files_.emplace_back(path, config.device.cache, memory);
    }
}

void TableFiles::count_rows() {
    first_rows_.assign(1, 0);
    for (const File& file : files_) {
        first_rows_.push_back(first_rows_.back() + static_cast<int64_t>(file.offsets.size()));
    }
}

TableFiles::Place TableFiles::place(int64_t row) const {
    const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
    const auto number = static_cast<size_t>(after - first_rows_.begin()) - 1;
    const File& file = files_[number];
    const auto i = static_cast<size_t>(row - first_rows_[number]);
    const int64_t end = i + 1 < file.offsets.size() ? file.offsets[i + 1] : file.text.size();
    return {number, file.text, file.offsets[i], end - file.offsets[i]};
}

std::string TableFiles::fingerprint(const char* what, const char* unit) const {
    std::string text = fmt::format("{} {} {}", what, rows(), unit);
    for (const File& file : files_) text += fmt::format(", {}", file.text.fingerprint());
    return text;
}

bool TableFiles::held(int64_t channels, int64_t memory) const {
    return held_bytes(rows(), channels) <= memory;
}

int64_t TableFiles::memory_bytes(int64_t channels, int64_t memory) const {
    if (held(channels, memory)) return held_bytes(rows(), channels);
    int64_t bytes = rows() * static_cast<int64_t>(sizeof(int64_t));
    for (const File& file : files_) bytes += file.text.memory_bytes();
    return bytes;
}

}  // namespace lockstep

// The text of one file of a table: plain or packed with gzip, small or larger than memory. A plain file stays on the
// disk; a packed one is unpacked into memory where it is small, else once into a cached copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/random_file.hpp"

namespace lockstep {

class TableText {
  public:
    /// Unpacked in memory up to about `memory` bytes; else into a copy in the folder `cache`. kData, naming the file.
    TableText(std::string path, const std::string& cache, int64_t memory);

    const std::string& path() const { return path_; }
    int64_t size() const { return size_; }
    int64_t memory_bytes() const { return static_cast<int64_t>(held_.size()); }
    const std::string& fingerprint() const { return fingerprint_; }

    /// `bytes` bytes from `offset` on, or all to the end. Valid until scratch changes.
    std::string_view read(int64_t offset, int64_t bytes, std::string& scratch) const;

  private:
    void check_start() const;

    std::string path_;
    std::string fingerprint_;
    std::vector<std::byte> held_;
    std::optional<RandomFile> file_;  // where it is not held
    int64_t size_ = 0;
};

/// Line after line of a text, in pieces.
class LineScan {
  public:
    explicit LineScan(const TableText& text) : text_(text) {}
    /// The next line without its end; nothing at the end of the text.
    std::optional<std::string_view> next();
    int64_t number() const { return number_; }  // of that line, from 1
    int64_t offset() const { return offset_; }  // of its first byte
    int64_t next_offset() const { return next_; }

  private:
    const TableText& text_;
    std::string scratch_;
    std::string_view piece_;
    int64_t piece_offset_ = 0;
    int64_t next_ = 0;
    int64_t offset_ = 0;
    int64_t number_ = 0;
};

/// `text` without the blanks around it.
std::string_view without_blanks(std::string_view text);

/// The whole of `text` as a finite number; nothing where it is none. Never looks at the locale.
std::optional<double> parse_number(std::string_view text);

/// Text of a file for a message: short, and on one line.
std::string shown(std::string_view text);

}  // namespace lockstep

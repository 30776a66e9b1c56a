// The records of a CSV file one after another, with their places; and one record again, by its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/csv_record.hpp"
#include "data/table_text.hpp"

namespace lockstep {

class CsvScan {
  public:
    /// From the first record on, after a byte order mark and `skip_lines` lines. The text outlives the scan.
    CsvScan(const TableText& text, const CsvFormat& format, int64_t skip_lines);

    /// Goes to the next record; false at the end. kData, naming file and line, for quotes that do not close.
    bool next();
    const CsvRecord& record() const { return record_; }
    int64_t line() const { return line_; }      // of the record's start, from 1
    int64_t offset() const { return offset_; }  // of its first byte
    /// "adult.data:17"
    std::string place() const;

  private:
    const TableText& text_;
    const CsvFormat& format_;
    CsvRecord record_;
    std::string scratch_;
    std::string_view piece_;  // what has been read and not yet passed
    int64_t offset_ = 0;
    int64_t line_ = 0;
    int64_t next_offset_ = 0;
    int64_t next_line_ = 1;
};

/// The record at an offset where a scan found one.
void read_csv_record(const TableText& text, int64_t offset, int64_t bytes, const CsvFormat& format,
                     std::string& scratch, CsvRecord& record);

}  // namespace lockstep

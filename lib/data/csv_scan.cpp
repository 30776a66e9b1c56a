#include "data/csv_scan.hpp"

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;

}  // namespace

CsvScan::CsvScan(const TableText& text, const CsvFormat& format, int64_t skip_lines) : text_(text), format_(format) {
    if (text.read(0, 3, scratch_).starts_with("\xef\xbb\xbf")) next_offset_ = 3;
    LineScan lines(text);
    for (int64_t i = 0; i < skip_lines && lines.next(); ++i) {
        next_offset_ = lines.next_offset();
        ++next_line_;
    }
}

bool CsvScan::next() {
    for (int64_t wanted = kPiece; next_offset_ < text_.size();) {
        const bool last = next_offset_ + static_cast<int64_t>(piece_.size()) == text_.size();
        const CsvStatus status = parse_csv_record(piece_, last, format_, record_);
        if (status == CsvStatus::kMore) {
            piece_ = text_.read(next_offset_, wanted, scratch_);
            wanted *= 2;
            continue;
        }
        offset_ = next_offset_;
        line_ = next_line_;
        if (status == CsvStatus::kOpenQuote) {
            fail(ErrorKind::kData, "{}: a quote (\") that opens in the record that starts here is never closed",
                 place());
        }
        if (status == CsvStatus::kAfterQuote) {
            fail(ErrorKind::kData,
                 "{}: after the closing quote of field {} neither the separator ({}) nor the end of the line follows",
                 place(), record_.fields.size(), shown(std::string_view(&format_.separator, 1)));
        }
        piece_.remove_prefix(record_.bytes);
        next_offset_ += static_cast<int64_t>(record_.bytes);
        next_line_ += record_.lines;
        if (!record_.blank) return true;
    }
    return false;
}

std::string CsvScan::place() const {
    return fmt::format("{}:{}", text_.path(), line_);
}

void read_csv_record(const TableText& text, int64_t offset, int64_t bytes, const CsvFormat& format,
                     std::string& scratch, CsvRecord& record) {
    const std::string_view piece = text.read(offset, bytes, scratch);
    if (parse_csv_record(piece, true, format, record) != CsvStatus::kRecord) {
        fail(ErrorKind::kData, "{}: the record at 0x{:x} is not what it was; did the file change?", text.path(),
             offset);
    }
}

}  // namespace lockstep

#include "data/csv_record.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr size_t kNone = std::string_view::npos;

class Parser {
  public:
    Parser(std::string_view text, bool last, const CsvFormat& format, CsvRecord& record)
        : text_(text), last_(last), format_(format), record_(record) {}

    CsvStatus parse() {
        record_.fields.clear();
        record_.blank = false;
        const size_t end = text_.find('\n');
        if (end == kNone && !last_) return CsvStatus::kMore;
        std::string_view line = text_.substr(0, end);
        record_.bytes = line.size() + (end == kNone ? 0 : 1);
        record_.lines = 1;
        if (line.ends_with('\r')) line.remove_suffix(1);
        const bool comment = !format_.comment.empty() && line.starts_with(format_.comment);
        record_.blank = comment || std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t'; });
        if (record_.blank) return CsvStatus::kRecord;
        if (line.find('"') != kNone) return parse_quoted();
        split(line);
        return CsvStatus::kRecord;
    }

  private:
    bool is_separator(char c) const { return c == format_.separator || (c == '\t' && format_.separator == ' '); }
    bool is_blank(char c) const { return (c == ' ' || c == '\t') && (c != format_.separator || c == ' '); }

    std::string_view trimmed(std::string_view field) const {
        while (!field.empty() && is_blank(field.front())) field.remove_prefix(1);
        while (!field.empty() && is_blank(field.back())) field.remove_suffix(1);
        return field;
    }

    // The common case, a line without a quote.
    void split(std::string_view line) {
        if (format_.separator == ' ') line = trimmed(line);
        for (;;) {
            const size_t end = format_.separator == ' ' ? line.find_first_of(" \t") : line.find(format_.separator);
            record_.fields.push_back(trimmed(line.substr(0, end)));
            if (end == kNone) return;
            line.remove_prefix(end + 1);
            if (format_.separator == ' ') line = trimmed(line);
        }
    }

    void skip_blanks() {
        while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    }

    /// Character by character, over line ends within quotes.
    CsvStatus parse_quoted() {
        record_.unquoted.clear();
        record_.unquoted.reserve(text_.size());  // so that fields, which point into it, stay where they are
        record_.lines = 0;
        for (;;) {
            skip_blanks();
            if (format_.separator == ' ' && at_end_of_line() && !record_.fields.empty()) return end_record();
            const CsvStatus field = at_ < text_.size() && text_[at_] == '"' ? quoted_field() : plain_field();
            if (field != CsvStatus::kRecord) return field;
            if (at_ + 1 >= text_.size() && !last_) return CsvStatus::kMore;  // a \r may have its \n behind it
            if (at_end_of_line()) return end_record();
            if (is_separator(text_[at_])) {
                ++at_;
            } else if (format_.separator != ' ') {
                return CsvStatus::kAfterQuote;
            }
        }
    }

    CsvStatus quoted_field() {
        const size_t start = record_.unquoted.size();
        ++at_;
        for (;; ++at_) {
            const size_t quote = text_.find('"', at_);
            if (quote == kNone) return last_ ? CsvStatus::kOpenQuote : CsvStatus::kMore;
            if (quote + 1 == text_.size() && !last_) return CsvStatus::kMore;
            const std::string_view part = text_.substr(at_, quote - at_);
            record_.unquoted.append(part);
            record_.lines += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
            at_ = quote + 1;
            if (at_ == text_.size() || text_[at_] != '"') break;
            record_.unquoted += '"';
        }
        record_.fields.push_back(std::string_view(record_.unquoted).substr(start));
        if (format_.separator != ' ') skip_blanks();
        return CsvStatus::kRecord;
    }

    CsvStatus plain_field() {
        const size_t start = at_;
        while (at_ < text_.size() && !is_separator(text_[at_]) && text_[at_] != '\n') ++at_;
        std::string_view field = text_.substr(start, at_ - start);
        if (at_end_of_line() && field.ends_with('\r')) field.remove_suffix(1);
        record_.fields.push_back(trimmed(field));
        return CsvStatus::kRecord;
    }

    bool at_end_of_line() const {
        const std::string_view rest = text_.substr(at_);
        return rest.empty() || rest[0] == '\n' || rest == "\r" || rest.starts_with("\r\n");
    }

    CsvStatus end_record() {
        const size_t end = text_.find('\n', at_);
        record_.bytes = end == kNone ? text_.size() : end + 1;
        ++record_.lines;
        return CsvStatus::kRecord;
    }

    std::string_view text_;
    bool last_;
    const CsvFormat& format_;
    CsvRecord& record_;
    size_t at_ = 0;
};

}  // namespace

CsvStatus parse_csv_record(std::string_view text, bool last, const CsvFormat& format, CsvRecord& record) {
    return Parser(text, last, format, record).parse();
}

}  // namespace lockstep

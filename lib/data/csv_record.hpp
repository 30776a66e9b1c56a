// One record of a CSV file (RFC 4180): fields between separators, quotes around what holds separators, quotes or line
// ends. Blanks around an unquoted field, or around the quotes, do not belong to it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct CsvFormat {
    char separator = ',';  // ' ': any number of blanks
    std::string comment;   // lines that start so are passed over; empty: there are none
};

struct CsvRecord {
    std::vector<std::string_view> fields;  // of the text that was parsed, or of `unquoted`
    std::string unquoted;
    size_t bytes = 0;  // with its line end
    int lines = 0;
    bool blank = false;  // an empty line or a comment: no record
};

enum class CsvStatus {
    kRecord,
    kMore,       // the text ends within the record
    kOpenQuote,  // a quote is never closed
    kAfterQuote  // something other than a separator follows a closing quote
};

/// The record that `text` starts with; `last`: nothing follows the text.
CsvStatus parse_csv_record(std::string_view text, bool last, const CsvFormat& format, CsvRecord& record);

}  // namespace lockstep

#include "data/csv.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/csv_scan.hpp"
#include "data/table_columns.hpp"
#include "data/table_files.hpp"
#include "data/table_learner.hpp"
#include "data/validation.hpp"

namespace lockstep {
namespace {

using Fields = std::span<const std::string_view>;

/// The records of one split.
class CsvFiles {
  public:
    CsvFiles(const Config& config, const DataPaths& paths, const char* key, int64_t memory)
        : data_(config.data),
          format_{separator(config.data.separator), config.data.comment},
          files_(config, paths, key, memory),
          orders_(files_.files().size()) {}

    const TableFiles& files() const { return files_; }

    /// The names in the header of the first file, or c1, c2, ….
    std::vector<std::string> names() {
        CsvScan scan(files_.files().front().text, format_, data_.skip_lines);
        if (!scan.next()) fail(ErrorKind::kData, "{}: no records", files_.path());
        check_line_ends(scan);
        std::vector<std::string> names;
        for (const std::string_view field : scan.record().fields) {
            names.push_back(data_.header ? std::string(field) : fmt::format("c{}", names.size() + 1));
        }
        if (names.size() == 1) check_separator(scan);
        check_names(names, scan);
        return names;
    }

    /// Calls visit(fields, place) for every record. The fields are in the order of `columns`.
    template <class Visit>
    void scan(const TableColumns& columns, Visit visit) {
        for (size_t f = 0; f < orders_.size(); ++f) {
            scan_file(columns, f, [&](Fields fields, RowPlace place, const CsvScan&) { visit(fields, place); });
        }
    }

    /// The same, and keeps where the records lie.
    template <class Visit>
    void index(const TableColumns& columns, Visit visit) {
        files_.index([&](TableFiles::File& file, size_t f) {
            scan_file(columns, f, [&](Fields fields, RowPlace place, const CsvScan& at) {
                file.offsets.push_back(at.offset());
                visit(fields, place);
            });
        });
    }

    int32_t make(int64_t row, const TableColumns& columns, std::span<float> values) const {
        const TableFiles::Place at = files_.place(row);
        return scratch_.use([&](Scratch& own) {
            read_csv_record(at.text, at.offset, at.bytes, format_, own.text, own.record);
            const auto place = [&] { return fmt::format("{} at 0x{:x}", at.text.path(), at.offset); };
            return columns.encode(in_order(orders_[at.file], own.record.fields, own.ordered), place, values);
        });
    }

  private:
    using Order = std::vector<int>;  // of a file's fields, where its header has another; -1: it lacks one nobody reads
    struct Scratch {
        std::string text;
        CsvRecord record;
        std::vector<std::string_view> ordered;
    };

    template <class Visit>
    void scan_file(const TableColumns& columns, size_t number, Visit visit) {
        const TableText& text = files_.files()[number].text;
        CsvScan scan(text, format_, data_.skip_lines);
        Order& order = orders_[number];
        const int fields = data_.header ? read_header(text, scan, columns, order) : columns.fields();
        std::vector<std::string_view> ordered;
        while (scan.next()) {
            const auto& found = scan.record().fields;
            const auto place = [&] { return scan.place(); };
            if (static_cast<int>(found.size()) != fields) {
                fail(ErrorKind::kData, "{}: {} field{}, but {} {}: \"{}\"", place(), found.size(),
                     found.size() == 1 ? "" : "s",
                     data_.header ? "the header has" : "the first record of the training data has", fields,
                     shown(fmt::format("{}", fmt::join(found, std::string_view(&format_.separator, 1)))));
            }
            visit(in_order(order, found, ordered), place, scan);
        }
    }

    static char separator(const std::string& text) {
        if (text.size() == 1 && text[0] != '"' && text[0] != '\n' && text[0] != '\r') return text[0];
        fail(ErrorKind::kUsage,
             "data.separator = \"{}\": one character is needed, such as \",\", \";\", \"\\t\" or "
             "\" \" (any number of blanks)",
             text);
    }

    /// Old Macs, and some spreadsheets there, end lines by 0d alone: the file would be one long header.
    static void check_line_ends(const CsvScan& scan) {
        for (const std::string_view field : scan.record().fields) {
            const bool quoted = !scan.record().unquoted.empty();
            if (quoted || field.find('\r') == std::string_view::npos) continue;
            fail(ErrorKind::kData, "{}: a byte 0d within the line; save the file with line ends of 0a, or 0d 0a",
                 scan.place());
        }
    }

    static std::string as_written(char separator) { return separator == '\t' ? "\\t" : std::string(1, separator); }

    /// A table has two fields at least: with one alone the separator is another.
    void check_separator(const CsvScan& scan) const {
        const std::string_view field = scan.record().fields.front();
        for (const char other : {';', '\t', ',', '|'}) {
            if (other == format_.separator || field.find(other) == std::string_view::npos) continue;
            fail(ErrorKind::kUsage, "{}: one field alone, \"{}\": set data.separator = \"{}\"", scan.place(),
                 shown(field), as_written(other));
        }
        fail(ErrorKind::kData,
             "{}: one field alone, \"{}\", where a table has two at least: the label and what it "
             "follows from; is it a table, and data.separator = \"{}\" its separator?",
             scan.place(), shown(field), as_written(format_.separator));
    }

    static void check_names(const std::vector<std::string>& names, const CsvScan& scan) {
        std::vector<std::string> sorted(names);
        std::sort(sorted.begin(), sorted.end());
        const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
        if (twice == sorted.end()) return;
        fail(ErrorKind::kData, "{}: the name \"{}\" stands twice in the header; if it is none, set data.header = false",
             scan.place(), shown(*twice));
    }

    /// The header of a file against the names of the training data; returns how many fields its records must have.
    static int read_header(const TableText& text, CsvScan& scan, const TableColumns& columns, Order& order) {
        if (!scan.next()) fail(ErrorKind::kData, "{}: no header", text.path());
        std::vector<std::string> header(scan.record().fields.begin(), scan.record().fields.end());
        order.clear();
        if (header != columns.names()) {
            check_names(header, scan);
            order = columns.order_of(header, text.path());
        }
        return static_cast<int>(header.size());
    }

    static Fields in_order(const Order& order, const std::vector<std::string_view>& found,
                           std::vector<std::string_view>& ordered) {
        if (order.empty()) return found;
        ordered.clear();
        for (const int from : order)
            ordered.push_back(from < 0 ? std::string_view() : found[static_cast<size_t>(from)]);
        return ordered;
    }

    const Config::Data& data_;
    CsvFormat format_;
    TableFiles files_;
    std::vector<Order> orders_;  // of each file
    mutable Lent<Scratch> scratch_;
};

/// A split with its columns: what a sample that is made on demand needs.
struct CsvSplit {
    Config config;  // which the records look into
    CsvFiles records;
    std::shared_ptr<const TableColumns> columns;

    CsvSplit(const Config& from, const DataPaths& paths, const char* key, int64_t memory)
        : config(from), records(config, paths, key, memory) {}

    const TableFiles& files() const { return records.files(); }
    int channels() const { return columns->channels(); }
    /// Of one that is indexed.
    static std::unique_ptr<Dataset> dataset(std::shared_ptr<CsvSplit> split, int64_t memory);
};

/// Those that data.validation holds out, ascending: what is learned from them would flatter the evaluation.
std::vector<int64_t> held_out_rows(const Config& config, CsvFiles& records, const TableColumns& columns) {
    if (config.data.validation == 0) return {};
    int64_t rows = 0;
    records.scan(columns, [&](Fields, RowPlace) { ++rows; });
    const int64_t count = held_out_samples(config.data.validation, rows);
    if (count == 0) return {};
    return held_out_indices(static_cast<uint64_t>(config.seed), rows, count);
}

std::shared_ptr<TableColumns> learn(const Config& config, CsvFiles& records) {
    const Config::Data& data = config.data;
    auto columns = std::make_shared<TableColumns>(column_specs(data.columns), records.names(), data.header,
                                                  data.label_column, data.missing);
    TableLearner learner(*columns, config.train.loss == "mse");
    if (learner.guesses()) {
        records.scan(*columns, [&](Fields fields, RowPlace) { learner.guess(fields); });
        learner.end_guessing();
    }
    const std::vector<int64_t> held_out = held_out_rows(config, records, *columns);
    int64_t row = 0;
    records.index(*columns, [&](Fields fields, RowPlace place) {
        if (std::binary_search(held_out.begin(), held_out.end(), row++)) {
            learner.check_held_out(fields, place);
        } else {
            learner.learn(fields, place);
        }
    });
    learner.finish(records.files().path());
    return columns;
}

std::unique_ptr<Dataset> CsvSplit::dataset(std::shared_ptr<CsvSplit> split, int64_t memory) {
    CsvFiles& records = split->records;
    const TableColumns& columns = *split->columns;
    const int64_t rows = split->files().rows();
    TableSplit facts{rows,
                     {1, 1, columns.channels()},
                     columns.classes(),
                     columns.described(),
                     split->files().fingerprint("csv", "records"),
                     columns.class_names()};
    if (!split->files().held(columns.channels(), memory)) {
        return made_table(std::move(facts), [split = std::move(split)](int64_t row, std::span<float> values) {
            return split->records.make(row, *split->columns, values);
        });
    }
    HeldRows held;
    held.labels.reserve(static_cast<size_t>(rows));
    held.values.resize(static_cast<size_t>(rows * columns.channels()));
    const auto channels = static_cast<size_t>(columns.channels());
    records.scan(columns, [&](Fields fields, RowPlace place) {
        const auto values = std::span(held.values).subspan(held.labels.size() * channels, channels);
        held.labels.push_back(columns.encode(fields, place, values));
    });
    return held_table(std::move(facts), std::move(held));
}

/// Both splits indexed, and every row of the test split checked.
TableSplits<CsvSplit> open_files(const Config& config, int64_t memory) {
    TableSplits<CsvSplit> opened;
    opened.train = std::make_shared<CsvSplit>(config, config.data.train, "data.train", memory);
    const auto columns = learn(config, opened.train->records);
    opened.train->columns = columns;
    if (config.data.test.empty()) return opened;
    opened.test = std::make_shared<CsvSplit>(config, config.data.test, "data.test", memory);
    opened.test->columns = columns;
    std::vector<float> values(static_cast<size_t>(columns->channels()));
    opened.test->records.index(*columns,
                               [&](Fields fields, RowPlace place) { columns->encode(fields, place, values); });
    if (opened.test->files().rows() == 0) fail(ErrorKind::kData, "{}: no records", opened.test->files().path());
    return opened;
}

}  // namespace

DataSplits open_csv(const Config& config, int64_t memory) {
    return open_files(config, memory).datasets(memory);
}

DataFacts csv_facts(const Config& config, int64_t memory) {
    const TableSplits<CsvSplit> opened = open_files(config, memory);
    const TableColumns& columns = *opened.train->columns;
    DataFacts facts;
    opened.tell(facts, memory);
    facts.classes = columns.classes();
    facts.columns = columns.described();
    facts.notes = columns.notes();
    return facts;
}

}  // namespace lockstep

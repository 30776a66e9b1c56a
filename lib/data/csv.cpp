#include "data/csv.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/csv_scan.hpp"
#include "data/table_columns.hpp"
#include "data/table_learner.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

using Fields = std::span<const std::string_view>;

/// The files of one split and where their records lie.
class CsvFiles {
  public:
    CsvFiles(const Config& config, const DataPaths& paths, const char* key, int64_t memory)
        : data_(config.data), format_{separator(config.data.separator), config.data.comment} {
        for (const std::string& path : source_files(paths.paths, key)) {
            files_.emplace_back(path, config.device.cache, memory);
        }
    }

    /// The names in the header of the first file, or c1, c2, ….
    std::vector<std::string> names() const {
        CsvScan scan(files_.front().text, format_, data_.skip_lines);
        if (!scan.next()) fail(ErrorKind::kData, "{}: no records", files_.front().text.path());
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
        std::vector<std::string_view> ordered;
        for (File& file : files_) {
            CsvScan scan(file.text, format_, data_.skip_lines);
            const int fields = data_.header ? read_header(file, scan, columns) : columns.fields();
            while (scan.next()) {
                const auto& found = scan.record().fields;
                const auto place = [&] { return scan.place(); };
                if (static_cast<int>(found.size()) != fields) {
                    fail(ErrorKind::kData, "{}: {} field{}, but {} {}: \"{}\"", place(), found.size(),
                         found.size() == 1 ? "" : "s",
                         data_.header ? "the header has" : "the first record of the training data has", fields,
                         shown(fmt::format("{}", fmt::join(found, std::string_view(&format_.separator, 1)))));
                }
                visit(in_order(file, found, ordered), place, file, scan);
            }
        }
    }

    /// The same, and keeps where the records lie.
    template <class Visit>
    void index(const TableColumns& columns, Visit visit) {
        for (File& file : files_) file.offsets.clear();
        first_rows_.clear();
        int64_t rows = 0;
        scan(columns, [&](Fields fields, RowPlace place, File& file, const CsvScan& at) {
            file.offsets.push_back(at.offset());
            ++rows;
            visit(fields, place);
        });
        int64_t first = 0;
        for (const File& file : files_) {
            first_rows_.push_back(first);
            first += static_cast<int64_t>(file.offsets.size());
        }
        rows_ = rows;
    }

    int64_t rows() const { return rows_; }
    const std::string& path() const { return files_.front().text.path(); }
    std::string fingerprint() const {
        std::string text = fmt::format("csv {} records", rows_);
        for (const File& file : files_) text += fmt::format(", {}", file.text.fingerprint());
        return text;
    }
    int64_t memory_bytes() const {
        int64_t bytes = rows_ * static_cast<int64_t>(sizeof(int64_t));
        for (const File& file : files_) bytes += file.text.memory_bytes();
        return bytes;
    }

    int32_t make(int64_t row, const TableColumns& columns, std::span<float> values) const {
        const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
        const File& file = files_[static_cast<size_t>(after - first_rows_.begin()) - 1];
        const auto i = static_cast<size_t>(row - *std::prev(after));
        const int64_t offset = file.offsets[i];
        const int64_t end = i + 1 < file.offsets.size() ? file.offsets[i + 1] : file.text.size();
        return scratch_.use([&](Scratch& own) {
            read_csv_record(file.text, offset, end - offset, format_, own.text, own.record);
            const auto place = [&] { return fmt::format("{} at 0x{:x}", file.text.path(), offset); };
            return columns.encode(in_order(file, own.record.fields, own.ordered), place, values);
        });
    }

  private:
    struct File {
        File(const std::string& path, const std::string& cache, int64_t memory) : text(path, cache, memory) {}
        TableText text;
        std::vector<int64_t> offsets;  // of the records
        std::vector<int> order;        // of its fields, where its header has another; -1: it lacks one nobody reads
    };
    struct Scratch {
        std::string text;
        CsvRecord record;
        std::vector<std::string_view> ordered;
    };

    static char separator(const std::string& text) {
        if (text.size() == 1 && text[0] != '"' && text[0] != '\n' && text[0] != '\r') return text[0];
        fail(ErrorKind::kUsage,
             "data.separator = \"{}\": one character is needed, such as \",\", \";\", \"\\t\" or "
             "\" \" (any number of blanks)",
             text);
    }

    /// A table has two fields at least: with one alone the separator is another.
    void check_separator(const CsvScan& scan) const {
        const std::string_view field = scan.record().fields.front();
        for (const char other : {';', '\t', ',', '|'}) {
            if (other == format_.separator || field.find(other) == std::string_view::npos) continue;
            const std::string name = other == '\t' ? "\\t" : std::string(1, other);
            fail(ErrorKind::kUsage, "{}: one field alone, \"{}\": set data.separator = \"{}\"", scan.place(),
                 shown(field), name);
        }
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
    static int read_header(File& file, CsvScan& scan, const TableColumns& columns) {
        if (!scan.next()) fail(ErrorKind::kData, "{}: no header", file.text.path());
        std::vector<std::string> header(scan.record().fields.begin(), scan.record().fields.end());
        file.order.clear();
        if (header != columns.names()) {
            check_names(header, scan);
            file.order = columns.order_of(header, file.text.path());
        }
        return static_cast<int>(header.size());
    }

    static Fields in_order(const File& file, const std::vector<std::string_view>& found,
                           std::vector<std::string_view>& ordered) {
        if (file.order.empty()) return found;
        ordered.clear();
        for (const int from : file.order)
            ordered.push_back(from < 0 ? std::string_view() : found[static_cast<size_t>(from)]);
        return ordered;
    }

    const Config::Data& data_;
    CsvFormat format_;
    std::deque<File> files_;
    std::vector<int64_t> first_rows_;  // of each file
    int64_t rows_ = 0;
    mutable Lent<Scratch> scratch_;
};

/// A split with its columns: what a sample that is made on demand needs.
struct CsvSplit {
    Config config;
    CsvFiles files;
    std::shared_ptr<const TableColumns> columns;

    CsvSplit(const Config& from, const DataPaths& paths, const char* key, int64_t memory)
        : config(from), files(config, paths, key, memory) {}
};

std::shared_ptr<TableColumns> learn(const Config& config, CsvFiles& files) {
    const Config::Data& data = config.data;
    auto columns = std::make_shared<TableColumns>(column_specs(data.columns), files.names(), data.header,
                                                  data.label_column, data.missing);
    TableLearner learner(*columns, config.train.loss == "mse");
    if (learner.guesses()) {
        files.scan(*columns, [&](Fields fields, auto&&...) { learner.guess(fields); });
        learner.end_guessing();
    }
    files.index(*columns, [&](Fields fields, RowPlace place) { learner.learn(fields, place); });
    learner.finish(files.path());
    return columns;
}

bool is_held(const CsvFiles& files, const TableColumns& columns, int64_t memory) {
    return held_bytes(files.rows(), columns.channels()) <= memory;
}

/// `files` are indexed.
std::unique_ptr<Dataset> open_split(std::shared_ptr<CsvSplit> split, int64_t memory) {
    CsvFiles& files = split->files;
    const TableColumns& columns = *split->columns;
    TableSplit facts{
        files.rows(), {1, 1, columns.channels()}, columns.classes(), columns.described(), files.fingerprint()};
    if (!is_held(files, columns, memory)) {
        return made_table(std::move(facts), [split = std::move(split)](int64_t row, std::span<float> values) {
            return split->files.make(row, *split->columns, values);
        });
    }
    HeldRows held;
    held.labels.reserve(static_cast<size_t>(files.rows()));
    held.values.resize(static_cast<size_t>(files.rows() * columns.channels()));
    const auto channels = static_cast<size_t>(columns.channels());
    files.scan(columns, [&](Fields fields, RowPlace place, auto&&...) {
        const auto values = std::span(held.values).subspan(held.labels.size() * channels, channels);
        held.labels.push_back(columns.encode(fields, place, values));
    });
    return held_table(std::move(facts), std::move(held));
}

struct Opened {
    std::shared_ptr<CsvSplit> train, test;
};

/// Both splits indexed, and every row of the test split checked.
Opened open_files(const Config& config, int64_t memory) {
    Opened opened;
    opened.train = std::make_shared<CsvSplit>(config, config.data.train, "data.train", memory);
    const auto columns = learn(config, opened.train->files);
    opened.train->columns = columns;
    if (config.data.test.empty()) return opened;
    opened.test = std::make_shared<CsvSplit>(config, config.data.test, "data.test", memory);
    opened.test->columns = columns;
    std::vector<float> values(static_cast<size_t>(columns->channels()));
    opened.test->files.index(*columns, [&](Fields fields, RowPlace place) { columns->encode(fields, place, values); });
    if (opened.test->files.rows() == 0) fail(ErrorKind::kData, "{}: no records", opened.test->files.path());
    return opened;
}

int64_t split_bytes(const CsvSplit& split, int64_t memory) {
    const bool held = is_held(split.files, *split.columns, memory);
    return held ? held_bytes(split.files.rows(), split.columns->channels()) : split.files.memory_bytes();
}

}  // namespace

DataSplits open_csv(const Config& config, int64_t memory) {
    Opened opened = open_files(config, memory);
    DataSplits splits;
    splits.train = open_split(std::move(opened.train), memory);
    if (opened.test) splits.test = open_split(std::move(opened.test), memory);
    return splits;
}

DataFacts csv_facts(const Config& config, int64_t memory) {
    const Opened opened = open_files(config, memory);
    const TableColumns& columns = *opened.train->columns;
    DataFacts facts;
    facts.samples = opened.train->files.rows();
    facts.shape = {1, 1, columns.channels()};
    facts.classes = columns.classes();
    facts.columns = columns.described();
    facts.notes = columns.notes();
    facts.memory_bytes = split_bytes(*opened.train, memory);
    if (!opened.test) return facts;
    facts.test_samples = opened.test->files.rows();
    facts.memory_bytes += split_bytes(*opened.test, memory);
    return facts;
}

}  // namespace lockstep

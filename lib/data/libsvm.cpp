#include "data/libsvm.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "data/libsvm_row.hpp"
#include "data/normalisation.hpp"
#include "data/table_files.hpp"
#include "data/table_text.hpp"

namespace lockstep {
namespace {

/// What the training data say about all rows.
struct Meaning {
    bool from_zero = false;  // the first index
    int64_t features = 0;
    bool regression = false;
    std::vector<double> labels;  // of the classes, rising
    ChannelScale scale;

    int classes() const { return regression ? 0 : static_cast<int>(labels.size()); }
    int64_t index_of(int64_t written) const { return written - (from_zero ? 0 : 1); }
};

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// The rows of one split.
class LibsvmFiles {
  public:
    LibsvmFiles(const Config& config, const DataPaths& paths, const char* key, int64_t memory)
        : files_(config, paths, key, memory) {}

    const TableFiles& files() const { return files_; }

    /// Calls visit(row, place) for every row, and keeps where they lie.
    template <class Visit>
    void index(Visit visit) {
        LibsvmRow row;
        files_.index([&](TableFiles::File& file, size_t) {
            LineScan scan(file.text);
            while (auto line = scan.next()) {
                // A byte order mark, which editors leave at the start, is no part of the first label.
                const bool marked = scan.offset() == 0 && line->starts_with(kByteOrderMark);
                if (marked) line->remove_prefix(kByteOrderMark.size());
                const auto place = [&] { return fmt::format("{}:{}", file.text.path(), scan.number()); };
                if (!parse_libsvm_row(*line, place, row)) continue;
                file.offsets.push_back(scan.offset() + (marked ? static_cast<int64_t>(kByteOrderMark.size()) : 0));
                visit(row, place);
            }
        });
        if (files_.rows() == 0) fail(ErrorKind::kData, "{}: no rows", files_.path());
    }

    /// Calls use(row, place) for row number `index`.
    template <class Use>
    int32_t with_row(int64_t index, Use use) const {
        const TableFiles::Place at = files_.place(index);
        return scratch_.use([&](Scratch& own) {
            std::string_view line = at.text.read(at.offset, at.bytes, own.text);
            line = line.substr(0, line.find('\n'));
            if (line.ends_with('\r')) line.remove_suffix(1);
            const auto place = [&] { return fmt::format("{} at 0x{:x}", at.text.path(), at.offset); };
            parse_libsvm_row(line, place, own.row);
            return use(own.row, place);
        });
    }

  private:
    struct Scratch {
        std::string text;
        LibsvmRow row;
    };

    TableFiles files_;
    mutable Lent<Scratch> scratch_;
};

int32_t encode(const LibsvmRow& row, const Meaning& meaning, FunctionRef<std::string()> place,
               std::span<float> values) {
    std::fill(values.begin(), values.end(), meaning.scale(0.0F));
    for (const LibsvmRow::Entry& entry : row.entries) {
        const int64_t at = meaning.index_of(entry.index);
        if (at < 0 || at >= meaning.features) {
            fail(ErrorKind::kData,
                 "{}: index {} is out of range: from {} to {} in the training data; data.features sets the largest",
                 place(), entry.index, meaning.from_zero ? 0 : 1, meaning.features - (meaning.from_zero ? 1 : 0));
        }
        values[static_cast<size_t>(at)] = meaning.scale(entry.value);
    }
    if (meaning.regression) return std::bit_cast<int32_t>(static_cast<float>(row.label));
    const auto found = std::lower_bound(meaning.labels.begin(), meaning.labels.end(), row.label);
    if (found != meaning.labels.end() && *found == row.label) {
        return static_cast<int32_t>(found - meaning.labels.begin());
    }
    fail(ErrorKind::kData, "{}: label {} is none of the {} of the training data: {}", place(), row.label,
         meaning.labels.size(), shown(fmt::format("{}", fmt::join(meaning.labels, ", "))));
}

Meaning learn(const Config& config, LibsvmFiles& rows) {
    Meaning meaning;
    meaning.regression = config.train.loss == "mse";
    std::set<double> labels;
    int64_t largest = 0;
    rows.index([&](const LibsvmRow& row, FunctionRef<std::string()> place) {
        if (!row.entries.empty()) {
            meaning.from_zero = meaning.from_zero || row.entries.front().index == 0;
            largest = std::max(largest, row.entries.back().index);
            if (config.data.features > 0 && row.entries.back().index > config.data.features) {
                fail(ErrorKind::kData, "{}: index {} is above data.features = {}", place(), row.entries.back().index,
                     config.data.features);
            }
        }
        meaning.regression = meaning.regression || row.label != std::floor(row.label);
        if (!meaning.regression) labels.insert(row.label);
    });
    meaning.features = std::max(largest, config.data.features) + (meaning.from_zero ? 1 : 0);
    if (meaning.features == 0) fail(ErrorKind::kData, "{}: no row has any index:value", rows.files().path());
    if (!meaning.regression) meaning.labels.assign(labels.begin(), labels.end());
    if (!meaning.regression && meaning.labels.size() < 2) {
        fail(ErrorKind::kData, "{}: one label alone ({}), at least 2 are needed", rows.files().path(),
             meaning.labels.front());
    }
    const auto scales = channel_scales(config.data, static_cast<int>(meaning.features));
    if (scales.size() > 1) fail(ErrorKind::kUsage, "data.mean, data.std: libsvm takes one value for all indices");
    meaning.scale = scales.front();
    return meaning;
}

struct Split {
    LibsvmFiles rows;
    std::shared_ptr<const Meaning> meaning;
    Split(const Config& config, const DataPaths& paths, const char* key, int64_t memory)
        : rows(config, paths, key, memory) {}

    const TableFiles& files() const { return rows.files(); }
    int channels() const { return static_cast<int>(meaning->features); }
    int32_t make(int64_t row, std::span<float> values) const {
        return rows.with_row(row, [&](const LibsvmRow& found, FunctionRef<std::string()> place) {
            return encode(found, *meaning, place, values);
        });
    }
    static std::unique_ptr<Dataset> dataset(std::shared_ptr<Split> split, int64_t memory);
};

std::unique_ptr<Dataset> Split::dataset(std::shared_ptr<Split> split, int64_t memory) {
    const int64_t rows = split->files().rows();
    const auto width = static_cast<size_t>(split->channels());
    TableSplit facts{
        rows, {1, 1, split->channels()}, split->meaning->classes(), {}, split->files().fingerprint("libsvm", "rows")};
    if (!split->files().held(split->channels(), memory)) {
        return made_table(std::move(facts), [split = std::move(split)](int64_t row, std::span<float> values) {
            return split->make(row, values);
        });
    }
    HeldRows held;
    held.values.resize(static_cast<size_t>(rows) * width);
    for (int64_t row = 0; row < rows; ++row) {
        const auto values = std::span(held.values).subspan(static_cast<size_t>(row) * width, width);
        held.labels.push_back(split->make(row, values));
    }
    return held_table(std::move(facts), std::move(held));
}

/// Both splits indexed, and every row of the test split checked.
TableSplits<Split> open_files(const Config& config, int64_t memory) {
    TableSplits<Split> opened;
    opened.train = std::make_shared<Split>(config, config.data.train, "data.train", memory);
    opened.train->meaning = std::make_shared<const Meaning>(learn(config, opened.train->rows));
    if (config.data.test.empty()) return opened;
    opened.test = std::make_shared<Split>(config, config.data.test, "data.test", memory);
    opened.test->meaning = opened.train->meaning;
    std::vector<float> values(static_cast<size_t>(opened.train->channels()));
    opened.test->rows.index([&](const LibsvmRow& row, FunctionRef<std::string()> place) {
        encode(row, *opened.train->meaning, place, values);
    });
    return opened;
}

}  // namespace

DataSplits open_libsvm(const Config& config, int64_t memory) {
    return open_files(config, memory).datasets(memory);
}

DataFacts libsvm_facts(const Config& config, int64_t memory) {
    const TableSplits<Split> opened = open_files(config, memory);
    const Meaning& meaning = *opened.train->meaning;
    DataFacts facts;
    opened.tell(facts, memory);
    facts.classes = meaning.classes();
    facts.notes.push_back(
        fmt::format("indices {} to {}", meaning.from_zero ? 0 : 1, meaning.features - (meaning.from_zero ? 1 : 0)));
    facts.notes.push_back(meaning.regression ? std::string("labels: numbers (regression)")
                                             : shown(fmt::format("labels: {}", fmt::join(meaning.labels, ", "))));
    return facts;
}

}  // namespace lockstep

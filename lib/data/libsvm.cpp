#include "data/libsvm.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "data/libsvm_row.hpp"
#include "data/normalisation.hpp"
#include "data/table_text.hpp"
#include "io/source_files.hpp"

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

class LibsvmFiles {
  public:
    LibsvmFiles(const Config& config, const DataPaths& paths, const char* key, int64_t memory) {
        for (const std::string& path : source_files(paths.paths, key)) {
            files_.emplace_back(path, config.device.cache, memory);
        }
    }

    /// Calls visit(row, place) for every row, and keeps where they lie.
    template <class Visit>
    void index(Visit visit) {
        rows_ = 0;
        first_rows_.clear();
        LibsvmRow row;
        for (File& file : files_) {
            file.offsets.clear();
            first_rows_.push_back(rows_);
            LineScan scan(file.text);
            while (const auto line = scan.next()) {
                const auto place = [&] { return fmt::format("{}:{}", file.text.path(), scan.number()); };
                if (!parse_libsvm_row(*line, place, row)) continue;
                file.offsets.push_back(scan.offset());
                ++rows_;
                visit(row, place);
            }
        }
        if (rows_ == 0) fail(ErrorKind::kData, "{}: no rows", path());
    }

    int64_t rows() const { return rows_; }
    const std::string& path() const { return files_.front().text.path(); }
    std::string fingerprint() const {
        std::string text = fmt::format("libsvm {} rows", rows_);
        for (const File& file : files_) text += fmt::format(", {}", file.text.fingerprint());
        return text;
    }
    int64_t memory_bytes() const {
        int64_t bytes = rows_ * static_cast<int64_t>(sizeof(int64_t));
        for (const File& file : files_) bytes += file.text.memory_bytes();
        return bytes;
    }

    /// Calls use(row, place) for row number `index`.
    template <class Use>
    int32_t with_row(int64_t index, Use use) const {
        const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), index);
        const File& file = files_[static_cast<size_t>(after - first_rows_.begin()) - 1];
        const auto i = static_cast<size_t>(index - *std::prev(after));
        const int64_t offset = file.offsets[i];
        const int64_t end = i + 1 < file.offsets.size() ? file.offsets[i + 1] : file.text.size();
        return scratch_.use([&](Scratch& own) {
            std::string_view line = file.text.read(offset, end - offset, own.text);
            line = line.substr(0, line.find('\n'));
            if (line.ends_with('\r')) line.remove_suffix(1);
            const auto place = [&] { return fmt::format("{} at 0x{:x}", file.text.path(), offset); };
            parse_libsvm_row(line, place, own.row);
            return use(own.row, place);
        });
    }

  private:
    struct File {
        File(const std::string& path, const std::string& cache, int64_t memory) : text(path, cache, memory) {}
        TableText text;
        std::vector<int64_t> offsets;  // of the rows
    };
    struct Scratch {
        std::string text;
        LibsvmRow row;
    };

    std::deque<File> files_;
    std::vector<int64_t> first_rows_;  // of each file
    int64_t rows_ = 0;
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

Meaning learn(const Config& config, LibsvmFiles& files) {
    Meaning meaning;
    meaning.regression = config.train.loss == "mse";
    std::set<double> labels;
    int64_t largest = 0;
    files.index([&](const LibsvmRow& row, FunctionRef<std::string()> place) {
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
    if (meaning.features == 0) fail(ErrorKind::kData, "{}: no row has any index:value", files.path());
    if (!meaning.regression) meaning.labels.assign(labels.begin(), labels.end());
    if (!meaning.regression && meaning.labels.size() < 2) {
        fail(ErrorKind::kData, "{}: one label alone ({}), at least 2 are needed", files.path(), meaning.labels.front());
    }
    const auto scales = channel_scales(config.data, static_cast<int>(meaning.features));
    if (scales.size() > 1) fail(ErrorKind::kUsage, "data.mean, data.std: libsvm takes one value for all indices");
    meaning.scale = scales.front();
    return meaning;
}

struct Split {
    LibsvmFiles files;
    std::shared_ptr<const Meaning> meaning;
    Split(const Config& config, const DataPaths& paths, const char* key, int64_t memory)
        : files(config, paths, key, memory) {}

    bool held(int64_t memory) const { return held_bytes(files.rows(), meaning->features) <= memory; }
    int64_t memory_bytes(int64_t memory) const {
        return held(memory) ? held_bytes(files.rows(), meaning->features) : files.memory_bytes();
    }
    int32_t make(int64_t row, std::span<float> values) const {
        return files.with_row(row, [&](const LibsvmRow& found, FunctionRef<std::string()> place) {
            return encode(found, *meaning, place, values);
        });
    }
};

struct Opened {
    std::shared_ptr<Split> train, test;
};

/// Both splits indexed, and every row of the test split checked.
Opened open_files(const Config& config, int64_t memory) {
    Opened opened;
    opened.train = std::make_shared<Split>(config, config.data.train, "data.train", memory);
    opened.train->meaning = std::make_shared<const Meaning>(learn(config, opened.train->files));
    if (config.data.test.empty()) return opened;
    opened.test = std::make_shared<Split>(config, config.data.test, "data.test", memory);
    opened.test->meaning = opened.train->meaning;
    std::vector<float> values(static_cast<size_t>(opened.train->meaning->features));
    opened.test->files.index([&](const LibsvmRow& row, FunctionRef<std::string()> place) {
        encode(row, *opened.train->meaning, place, values);
    });
    return opened;
}

std::unique_ptr<Dataset> dataset(std::shared_ptr<Split> split, int64_t memory) {
    const Meaning& meaning = *split->meaning;
    const int64_t rows = split->files.rows();
    TableSplit facts{
        rows, {1, 1, static_cast<int>(meaning.features)}, meaning.classes(), {}, split->files.fingerprint()};
    if (!split->held(memory)) {
        return made_table(std::move(facts), [split = std::move(split)](int64_t row, std::span<float> values) {
            return split->make(row, values);
        });
    }
    HeldRows held;
    held.values.resize(static_cast<size_t>(rows * meaning.features));
    const auto width = static_cast<size_t>(meaning.features);
    for (int64_t row = 0; row < rows; ++row) {
        const auto values = std::span(held.values).subspan(static_cast<size_t>(row) * width, width);
        held.labels.push_back(split->make(row, values));
    }
    return held_table(std::move(facts), std::move(held));
}

}  // namespace

DataSplits open_libsvm(const Config& config, int64_t memory) {
    Opened opened = open_files(config, memory);
    DataSplits splits;
    splits.train = dataset(std::move(opened.train), memory);
    if (opened.test) splits.test = dataset(std::move(opened.test), memory);
    return splits;
}

DataFacts libsvm_facts(const Config& config, int64_t memory) {
    const Opened opened = open_files(config, memory);
    const Meaning& meaning = *opened.train->meaning;
    DataFacts facts;
    facts.samples = opened.train->files.rows();
    facts.shape = {1, 1, static_cast<int>(meaning.features)};
    facts.classes = meaning.classes();
    facts.memory_bytes = opened.train->memory_bytes(memory);
    facts.notes.push_back(
        fmt::format("indices {} to {}", meaning.from_zero ? 0 : 1, meaning.features - (meaning.from_zero ? 1 : 0)));
    facts.notes.push_back(meaning.regression ? std::string("labels: numbers (regression)")
                                             : shown(fmt::format("labels: {}", fmt::join(meaning.labels, ", "))));
    if (!opened.test) return facts;
    facts.test_samples = opened.test->files.rows();
    facts.memory_bytes += opened.test->memory_bytes(memory);
    return facts;
}

}  // namespace lockstep

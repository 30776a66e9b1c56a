// The files of one split of a table, and where their rows lie: what formats of text with a row a line share. Rows are
// found once, in order, and read again by their places.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "data/data_facts.hpp"
#include "data/dataset.hpp"
#include "data/table_text.hpp"

namespace lockstep {

class TableFiles {
  public:
    struct File {
        File(const std::string& path, const std::string& cache, int64_t memory) : text(path, cache, memory) {}
        TableText text;
        std::vector<int64_t> offsets;  // of the rows
    };
    /// One row, wherever it is.
    struct Place {
        size_t file;
        const TableText& text;
        int64_t offset, bytes;
    };

    /// Those that data.train or data.test (`key`) names; kUsage or kData where there is none.
    TableFiles(const Config& config, const DataPaths& paths, const char* key, int64_t memory);

    std::deque<File>& files() { return files_; }
    const std::string& path() const { return files_.front().text.path(); }  // of the first

    /// Calls find(file, number of the file) for each file, which notes in file.offsets where its rows start.
    template <class Find>
    void index(Find find) {
        for (File& file : files_) file.offsets.clear();
        for (size_t f = 0; f < files_.size(); ++f) find(files_[f], f);
        count_rows();
    }

    int64_t rows() const { return first_rows_.back(); }
    Place place(int64_t row) const;

    /// "csv 3 records, NAME SIZE HASH, …": `what` stands before the number, `unit` behind it.
    std::string fingerprint(const char* what, const char* unit) const;

    /// Whether a split with so many values in a row is small enough to be held in memory, and what it takes there; else
    /// what is held are the places of the rows.
    bool held(int64_t channels, int64_t memory) const;
    int64_t memory_bytes(int64_t channels, int64_t memory) const;

  private:
    void count_rows();

    std::deque<File> files_;
    std::vector<int64_t> first_rows_{0};  // of each file; behind the last the number of rows
};

/// Both splits of a table, opened by the format. A Split has files(), channels() and dataset(self, memory).
template <class Split>
struct TableSplits {
    std::shared_ptr<Split> train, test;

    DataSplits datasets(int64_t memory) && {
        DataSplits splits;
        splits.train = Split::dataset(std::move(train), memory);
        if (test) splits.test = Split::dataset(std::move(test), memory);
        return splits;
    }

    /// How many samples there are, and how much of them is held.
    void tell(DataFacts& facts, int64_t memory) const {
        facts.shape = {1, 1, train->channels()};
        facts.samples = train->files().rows();
        facts.memory_bytes = train->files().memory_bytes(train->channels(), memory);
        if (!test) return;
        facts.test_samples = test->files().rows();
        facts.memory_bytes += test->files().memory_bytes(test->channels(), memory);
    }
};

}  // namespace lockstep

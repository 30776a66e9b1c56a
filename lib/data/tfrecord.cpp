#include "data/tfrecord.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "data/file_sets.hpp"
#include "data/picture_source.hpp"
#include "data/tf_example.hpp"
#include "data/tfrecord_index.hpp"
#include "io/jpeg.hpp"

namespace lockstep {
namespace {

class TfRecords final : public PictureSource {
  public:
    TfRecords(const Config& config, const char* key, const std::vector<std::string>& paths)
        : names_{config.data.image_feature, config.data.label_feature},
          files_(open_data_files(complete_files(paths, key), config.device.cache)),
          indices_(files_.size()) {
        read_indices(config.device.cache);
        for (size_t f = 0; f < files_.size(); ++f) {
            files_[f].records = static_cast<int64_t>(indices_[f].size());
            starts_.push_back(size() + files_[f].records);
        }
    }

    int64_t size() const override { return starts_.empty() ? 0 : starts_.back(); }
    int classes() const override { return 0; }
    int32_t label(int64_t index) const override { return place(index).entry.label; }
    PictureSize picture_size(int64_t index) const override {
        const TfRecordEntry& entry = place(index).entry;
        if (entry.height > 0) return {entry.height, entry.width};
        const Picture told = picture(index);  // its header is damaged: says how
        return {told.height, told.width};
    }
    std::string name(int64_t index) const override {
        const Place at = place(index);
        return record_name(at.file.path, at.record, at.entry.offset);
    }
    int64_t memory_bytes() const override { return size() * static_cast<int64_t>(sizeof(TfRecordEntry)); }

    Picture picture(int64_t index) const override {
        const Place at = place(index);
        std::vector<std::byte> data;
        read_record(*at.file.bytes, at.file.path, at.record, at.entry.place(), data);
        const std::span<const std::byte> image = image_in(data, index);
        try {
            return decode_picture(image, name(index) + ", " + names_.image);
        } catch (const Error& error) {
            fail(error.kind(), "{}; make the file anew without this record", error.what());
        }
    }

    std::string fingerprint() const override {
        return fmt::format("tfrecord {}, {} and {}, {}", files_fingerprint(files_), names_.image, names_.label,
                           jpeg_decoder());
    }

  private:
    struct Place {
        const DataFile& file;
        int64_t record;
        const TfRecordEntry& entry;
    };
    Place place(int64_t index) const {
        const auto file =
            static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin());
        const int64_t record = index - (file == 0 ? 0 : starts_[file - 1]);
        return {files_[file], record, indices_[file][static_cast<size_t>(record)]};
    }

    std::span<const std::byte> image_in(std::span<const std::byte> data, int64_t index) const {
        try {
            return TfExample(data).bytes_of(names_.image);
        } catch (const Error& error) {
            fail(error.kind(), "{}: {}", name(index), error.what());
        }
    }

    // Several files at once; of several faults that of the first file is told always.
    void read_indices(const std::string& cache) {
        std::vector<std::exception_ptr> faults(files_.size());
        std::atomic<size_t> next{0};
        const bool whole = hashed_whole(files_);
        ThreadPool pool(static_cast<int>(std::min<size_t>({files_.size(), size_t{8}, size_t(available_cpus())})));
        pool.run([&](int, int) {
            for (size_t f = next++; f < files_.size(); f = next++) {
                try {
                    indices_[f] = index_of(files_[f], whole, names_, cache);
                } catch (...) {
                    faults[f] = std::current_exception();
                }
            }
        });
        for (const std::exception_ptr& fault : faults) {
            if (fault) std::rethrow_exception(fault);
        }
    }

    TfFeatureNames names_;
    std::vector<DataFile> files_;
    std::vector<std::vector<TfRecordEntry>> indices_;  // of each file
    std::vector<int64_t> starts_;                      // of each file: samples up to its end
};

std::unique_ptr<PictureSource> open_split(const Config& config, const char* key, const std::vector<std::string>& paths,
                                          const PictureSource*) {
    return std::make_unique<TfRecords>(config, key, paths);
}

}  // namespace

DataSplits open_tfrecord(const Config& config) {
    return open_pictures(config, open_split);
}

DataFacts tfrecord_facts(const Config& config) {
    return picture_facts(config, open_split);
}

}  // namespace lockstep

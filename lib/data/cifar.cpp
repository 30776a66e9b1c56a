#include "data/cifar.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/data_file.hpp"
#include "data/picture_source.hpp"
#include "data/recognise.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

constexpr int kSide = 32;
constexpr int64_t kPixels = int64_t{kSide} * kSide;  // of a channel

struct Kind {
    const char* name;
    int64_t labels;  // bytes before the pixels
    int64_t at;      // of the label that is used
    int classes;     // of it
    constexpr int64_t record() const { return labels + 3 * kPixels; }
};

constexpr Kind kTen{"cifar10", 1, 0, 10};
constexpr Kind kHundred{"cifar100 fine", 2, 1, 100};
constexpr Kind kHundredCoarse{"cifar100 coarse", 2, 0, 20};

// In place of a folder the files in it that the official archives have: data_batch_1.bin … or train.bin to train on,
// test_batch.bin or test.bin to test with.
std::vector<std::string> members(const std::vector<std::string>& paths, const char* key) {
    const bool test = std::string_view(key) == "data.test";
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code ignored;
        if (!std::filesystem::is_directory(path, ignored)) {
            files.push_back(path);
            continue;
        }
        const size_t before = files.size();
        for (const std::string& file : listed_files({path}, key)) {
            const std::string name = std::filesystem::path(file).filename().string();
            const bool binary = name.ends_with(".bin") || name.ends_with(".bin.gz");
            const bool wanted =
                test ? name.starts_with("test") : name.starts_with("data_batch") || name.starts_with("train");
            if (binary && wanted) files.push_back(file);
        }
        if (files.size() == before) {
            fail(ErrorKind::kData, "{}: {} holds no {}; name the files", key, path,
                 test ? "test_batch.bin or test.bin" : "data_batch_*.bin or train.bin");
        }
    }
    return files;
}

class Cifar final : public PictureSource {
  public:
    Cifar(const Config& config, const char* key, const std::vector<std::string>& paths, const Cifar* train) {
        files_ = open_data_files(source_files(members(paths, key), key), config.device.cache);
        kind_ = train ? train->kind_ : kind_of(files_.front(), config.data.label == "coarse");
        for (DataFile& file : files_) {
            check_size(file, train != nullptr);
            file.records = file.bytes->size() / kind_.record();
            read_labels(file);
            starts_.push_back(size());
        }
    }

    int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
    int32_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
    int classes() const override { return kind_.classes; }
    PictureSize picture_size(int64_t) const override { return {kSide, kSide}; }
    int64_t memory_bytes() const override { return size(); }

    Picture picture(int64_t index) const override {
        const auto [file, record] = place(index);
        std::array<std::byte, 3 * kPixels> planes;
        files_[file].bytes->read(record * kind_.record() + kind_.labels, planes);
        Picture picture{kSide, kSide, 3, std::vector<uint8_t>(planes.size())};
        for (size_t i = 0; i < kPixels; ++i) {
            for (size_t c = 0; c < 3; ++c) {
                picture.pixels[3 * i + c] = std::to_integer<uint8_t>(planes[c * kPixels + i]);
            }
        }
        return picture;
    }

    std::string name(int64_t index) const override {
        const auto [file, record] = place(index);
        return fmt::format("{}, record {} at 0x{:x}", files_[file].path, record, record * kind_.record());
    }

    std::string fingerprint() const override { return fmt::format("{} {}", kind_.name, files_fingerprint(files_)); }

  private:
    static bool holds(const DataFile& file, const Kind& kind) {
        return file.bytes->size() > 0 && file.bytes->size() % kind.record() == 0;
    }

    // A size that fits both (3,073 records of one, 3,074 of the other) is CIFAR-10's if all its labels are.
    static Kind kind_of(const DataFile& file, bool coarse) {
        const Kind& hundred = coarse ? kHundredCoarse : kHundred;
        if (!holds(file, kTen)) return hundred;
        if (!holds(file, hundred)) return kTen;
        for (int64_t i = 0; i < file.bytes->size() / kTen.record(); ++i) {
            std::array<std::byte, 1> label;
            file.bytes->read(i * kTen.record(), label);
            if (std::to_integer<int>(label[0]) >= kTen.classes) return hundred;
        }
        return kTen;
    }

    void check_size(const DataFile& file, bool test) const {
        if (holds(file, kind_)) return;
        if (file.bytes->size() == 0)
            fail(ErrorKind::kData, "{}: empty: CIFAR's records expected, 0 bytes found", file.path);
        std::array<std::byte, 512> start;
        const auto looked_at = std::span(start).first(std::min(start.size(), static_cast<size_t>(file.bytes->size())));
        file.bytes->read(0, looked_at);
        if (const std::string words = foreign_kind(looked_at); !words.empty()) {
            fail(ErrorKind::kData, "{}: {}", file.path, words);
        }
        if (&file == &files_.front() && !test) {
            fail(ErrorKind::kData,
                 "{}: {} bytes: a CIFAR-10 file has records of 3073 bytes, a CIFAR-100 file of 3074, and this is no "
                 "multiple of either: truncated, or another file; fetch it again",
                 file.path, file.bytes->size());
        }
        fail(ErrorKind::kData, "{}: {} bytes are no multiple of {}, the record size of {}, as which {} was read",
             file.path, file.bytes->size(), kind_.record(), kind_.name, test ? "data.train" : files_.front().path);
    }

    // With its record the label is read in large pieces, which the system then has at hand for the pixels, too.
    void read_labels(const DataFile& file) {
        constexpr int64_t kAtOnce = 1024;
        std::vector<std::byte> piece;
        for (int64_t first = 0; first < file.records; first += kAtOnce) {
            piece.resize(static_cast<size_t>(std::min(kAtOnce, file.records - first) * kind_.record()));
            file.bytes->read(first * kind_.record(), piece);
            for (size_t at = 0; at < piece.size(); at += static_cast<size_t>(kind_.record())) {
                const size_t where = at + static_cast<size_t>(kind_.at);
                const int label = std::to_integer<int>(piece[where]);
                if (label >= kind_.classes) {
                    fail(ErrorKind::kData, "{}: label {} at 0x{:x}: labels of {} go from 0 to {}", file.path, label,
                         static_cast<size_t>(first * kind_.record()) + where, kind_.name, kind_.classes - 1);
                }
                labels_.push_back(static_cast<uint8_t>(label));
            }
        }
    }

    std::pair<size_t, int64_t> place(int64_t index) const {
        const auto file =
            static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin());
        return {file, index - (file == 0 ? 0 : starts_[file - 1])};
    }

    std::vector<DataFile> files_;
    std::vector<int64_t> starts_;  // of each file: samples up to its end
    std::vector<uint8_t> labels_;
    Kind kind_{};
};

std::unique_ptr<PictureSource> open_split(const Config& config, const char* key, const std::vector<std::string>& paths,
                                          const PictureSource* train) {
    return std::make_unique<Cifar>(config, key, paths, static_cast<const Cifar*>(train));
}

}  // namespace

DataSplits open_cifar(const Config& config) {
    return open_pictures(config, open_split);
}

bool is_cifar_size(int64_t bytes) {
    return bytes > 0 && (bytes % kTen.record() == 0 || bytes % kHundred.record() == 0);
}

DataFacts cifar_facts(const Config& config) {
    return picture_facts(config, open_split);
}

}  // namespace lockstep

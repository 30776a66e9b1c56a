// Pictures that nobody labelled, to be predicted: open_unlabelled of dataset.hpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "data/data_file.hpp"
#include "data/picture_files.hpp"
#include "data/picture_source.hpp"
#include "io/files.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOption = "--input";

/// Pictures below a folder, in byte order of their paths.
std::vector<std::string> pictures_below(const std::string& folder) {
    std::vector<std::string> found;
    try {
        for_each_below(folder, kOption, [&](const fs::directory_entry& entry) {
            if (entry.is_regular_file() && named_as_picture(entry.path())) found.push_back(entry.path().string());
        });
    } catch (const fs::filesystem_error& error) {
        fail(ErrorKind::kData, "cannot read {}: {}", folder, error.code().message());
    }
    if (found.empty()) {
        fail(ErrorKind::kData, "{}: {} holds no file named .jpg, .jpeg or .png", kOption, folder);
    }
    std::sort(found.begin(), found.end());
    return found;
}

class PictureList final : public PictureSource {
  public:
    PictureList(const std::vector<std::string>& paths, std::vector<std::string> class_names)
        : class_names_(std::move(class_names)) {
        for (const std::string& path : paths) {
            std::error_code ignored;
            const bool folder = fs::is_directory(path, ignored);
            const std::vector<std::string> found = folder ? pictures_below(path) : std::vector<std::string>{path};
            files_.insert(files_.end(), found.begin(), found.end());
        }
        for (const std::string& file : files_) check_path(file, kOption);
    }

    int64_t size() const override { return static_cast<int64_t>(files_.size()); }
    int32_t label(int64_t) const override { return -1; }
    int classes() const override { return static_cast<int>(class_names_.size()); }
    std::vector<std::string> class_names() const override { return class_names_; }
    std::string name(int64_t index) const override { return files_[static_cast<size_t>(index)]; }
    Picture picture(int64_t index) const override { return decode_picture(read_file(name(index)), name(index)); }
    PictureSize picture_size(int64_t index) const override {
        return lockstep::picture_size(read_file(name(index)), name(index));
    }
    int64_t memory_bytes() const override {
        int64_t bytes = 0;
        for (const std::string& file : files_) bytes += static_cast<int64_t>(file.capacity() + sizeof(file));
        return bytes;
    }

    // Ranks must see the same pictures: all sizes, and the contents of 256 files, evenly spread.
    std::string fingerprint() const override {
        constexpr int64_t kMostHashed = 256;
        std::string facts;
        for (const std::string& file : files_) {
            facts += fmt::format("{} {}\n", fs::path(file).filename().string(), RandomFile(file).size());
        }
        const int64_t hashed = std::min(size(), kMostHashed);
        for (int64_t i = 0; i < hashed; ++i) {
            facts += hex16(content_hash(RandomFile(name(i * size() / hashed)), false)) + "\n";
        }
        return fmt::format("{} pictures, {}", size(), hex16(hash64(std::as_bytes(std::span(facts)))));
    }

  private:
    std::vector<std::string> files_;
    std::vector<std::string> class_names_;
};

}  // namespace

std::unique_ptr<Dataset> open_unlabelled(const Config& config, const std::vector<std::string>& paths,
                                         const Dataset& train) {
    const SampleShape shape = train.shape();
    // Of these a sample is bytes from 0 to 255; what numbers an array holds for a picture only its owner knows.
    constexpr std::array<std::string_view, 4> kOfPictures{"idx", "cifar", "image_folder", "tfrecord"};
    const bool pictures = std::find(kOfPictures.begin(), kOfPictures.end(), config.data.format) != kOfPictures.end() &&
                          shape.height * shape.width > 1 && (shape.channels == 1 || shape.channels == 3);
    if (!pictures) {
        fail(ErrorKind::kUsage,
             "{}: takes pictures, for a network trained on data.format = \"{}\"; data.train is in format \"{}\", {} x "
             "{} x {}; set data.test, with --split",
             kOption, fmt::join(kOfPictures, "\", \""), config.data.format, shape.height, shape.width, shape.channels);
    }
    return picture_dataset(std::make_unique<PictureList>(paths, train.class_names()), shape, train.classes(), config);
}

}  // namespace lockstep

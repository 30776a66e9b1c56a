#include "data/image_folder.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "data/data_file.hpp"
#include "data/picture_files.hpp"
#include "data/picture_source.hpp"
#include "io/files.hpp"
#include "io/jpeg.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Paths of pictures below a class folder, relative to it, in byte order. Adds to `visited` it and the folders in it.
std::vector<std::string> pictures_in(const fs::path& folder, const char* key, std::vector<std::string>& visited) {
    visited.push_back(folder.string());
    std::vector<std::string> found;
    int64_t others = 0;
    std::string other;
    for_each_below(folder, key, [&](const fs::directory_entry& entry) {
        if (entry.is_directory()) {
            visited.push_back(entry.path().string());
            return;
        }
        if (!entry.is_regular_file()) {
            if (!named_as_picture(entry.path())) return;
            fail(ErrorKind::kData, "{}: named as a picture, but it is no file", entry.path().string());
        }
        if (named_as_picture(entry.path())) {
            found.push_back(entry.path().lexically_relative(folder).string());
        } else {
            const std::string path = entry.path().string();
            if (others++ == 0 || path < other) other = path;
        }
    });
    if (others > 0) {
        warn("{} of {} named neither .jpg, .jpeg nor .png and left out, such as {}",
             others == 1 ? "1 file" : fmt::format("{} files", others), folder.string() + (others == 1 ? " is" : " are"),
             other);
    }
    if (found.empty()) fail(ErrorKind::kData, "{}: a class without a picture; remove the folder", folder.string());
    std::sort(found.begin(), found.end());
    return found;
}

class ImageFolder final : public PictureSource {
  public:
    ImageFolder(const char* key, const std::vector<std::string>& roots, const ImageFolder* train) : roots_(roots) {
        if (roots.empty())
            fail(ErrorKind::kUsage, "{}: not set; image_folder needs a folder with a folder a class", key);
        for (const std::string& root : roots) check_path(root, key);
        std::map<std::string, std::vector<uint32_t>> found;  // class: the roots that have it
        for (uint32_t root = 0; root < roots_.size(); ++root) list_classes(root, key, found);
        if (train) {
            classes_ = train->classes_;
            check_known(found, key);
        } else {
            for (const auto& [name, ignored] : found) classes_.push_back(name);
        }
        std::vector<std::string> visited;
        for (const auto& [name, in] : found) {
            const auto label = std::lower_bound(classes_.begin(), classes_.end(), name) - classes_.begin();
            for (const uint32_t root : in) list_pictures(root, name, static_cast<int32_t>(label), key, visited);
        }
        warn_of_repeated(visited, key);
    }

    int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
    int32_t label(int64_t index) const override { return entries_[static_cast<size_t>(index)].label; }
    int classes() const override { return static_cast<int>(classes_.size()); }
    std::vector<std::string> class_names() const override { return classes_; }
    std::string name(int64_t index) const override {
        const Entry& entry = entries_[static_cast<size_t>(index)];
        return fmt::format("{}/{}", roots_[entry.root], relative(index));
    }
    int64_t memory_bytes() const override {
        return static_cast<int64_t>(names_.capacity() + entries_.capacity() * sizeof(Entry));
    }

    Picture picture(int64_t index) const override {
        const std::string path = name(index);
        const std::vector<std::byte> bytes = read_file(path);
        try {
            return decode_picture(bytes, path);
        } catch (const Error& error) {
            fail(error.kind(), "{}; replace or remove this picture", error.what());
        }
    }

    // A header may lie behind a large colour profile.
    PictureSize picture_size(int64_t index) const override {
        constexpr int64_t kMostlyEnough = 1 << 16;
        const RandomFile file(name(index));
        std::vector<std::byte> start(static_cast<size_t>(std::min(file.size(), kMostlyEnough)));
        file.read(0, start);
        if (file.size() <= kMostlyEnough) return lockstep::picture_size(start, file.path());
        try {
            return lockstep::picture_size(start, file.path());
        } catch (const Error&) {
            return lockstep::picture_size(read_file(file.path()), file.path());
        }
    }

    // Of large sets the contents of 256 files, evenly spread, stand for all: opening a million takes minutes.
    std::string fingerprint() const override {
        constexpr uintmax_t kHashedWhole = uintmax_t{256} << 20;
        constexpr int64_t kMostHashed = 256;
        std::string facts;
        uintmax_t total = 0;
        for (int64_t i = 0; i < size(); ++i) {
            std::error_code error;
            const uintmax_t bytes = fs::file_size(name(i), error);
            if (error) fail(ErrorKind::kData, "cannot read {}: {}", name(i), error.message());
            total += bytes;
            facts += fmt::format("{} {}\n", relative(i), bytes);
        }
        const bool whole = total <= kHashedWhole;
        const int64_t hashed = whole ? size() : std::min(size(), kMostHashed);
        for (int64_t i = 0; i < hashed; ++i) {
            facts += hex16(content_hash(RandomFile(name(i * size() / hashed)), whole)) + "\n";
        }
        return fmt::format("image_folder {} files, {} classes, {}, {}", size(), classes(),
                           hex16(hash64(std::as_bytes(std::span(facts)))), jpeg_decoder());
    }

  private:
    // Names lie behind one another: of a million files, each in a string of its own would take twice the memory.
    struct Entry {
        uint64_t begin;  // of "class/picture.jpg" in names_; it ends with a zero
        int32_t label;
        uint32_t root;
    };

    std::string_view relative(int64_t index) const {
        return names_.data() + entries_[static_cast<size_t>(index)].begin;
    }

    void list_classes(uint32_t root, const char* key, std::map<std::string, std::vector<uint32_t>>& found) const {
        const std::string& folder = roots_[root];
        std::error_code ignored;
        if (!fs::is_directory(folder, ignored)) {
            fail(ErrorKind::kData, "{}: {} is no folder; image_folder needs one with a folder for each class", key,
                 folder);
        }
        size_t classes = 0;
        try {
            for (const auto& entry : fs::directory_iterator(folder)) {
                if (is_hidden(entry.path())) continue;
                if (entry.is_symlink()) check_link(entry.path());
                if (!entry.is_directory()) continue;
                check_path(entry.path().native(), key);
                found[entry.path().filename().string()].push_back(root);
                ++classes;
            }
        } catch (const fs::filesystem_error& error) {
            fail(ErrorKind::kData, "cannot read {}: {}", folder, error.code().message());
        }
        if (classes == 0) {
            fail(ErrorKind::kData, "{}: {} holds no folder; pictures must lie in a folder for each class", key, folder);
        }
    }

    void list_pictures(uint32_t root, const std::string& name, int32_t label, const char* key,
                       std::vector<std::string>& visited) {
        const fs::path folder = fs::path(roots_[root]) / name;
        try {
            for (const std::string& picture : pictures_in(folder, key, visited)) {
                entries_.push_back({names_.size(), label, root});
                names_ += name;
                names_ += '/';
                names_ += picture;
                names_ += '\0';
            }
        } catch (const fs::filesystem_error& error) {
            fail(ErrorKind::kData, "cannot read {}: {}", folder.string(), error.code().message());
        }
    }

    void check_known(const std::map<std::string, std::vector<uint32_t>>& found, const char* key) const {
        for (const auto& [name, in] : found) {
            if (std::binary_search(classes_.begin(), classes_.end(), name)) continue;
            fail(ErrorKind::kData, "{}: {}/{} is a class that data.train does not have", key, roots_[in.front()], name);
        }
    }

    std::vector<std::string> roots_;
    std::vector<std::string> classes_;  // in byte order
    std::string names_;
    std::vector<Entry> entries_;
};

std::unique_ptr<PictureSource> open_split(const Config&, const char* key, const std::vector<std::string>& paths,
                                          const PictureSource* train) {
    return std::make_unique<ImageFolder>(key, paths, static_cast<const ImageFolder*>(train));
}

}  // namespace

DataSplits open_image_folder(const Config& config) {
    return open_pictures(config, open_split);
}

DataFacts image_folder_facts(const Config& config) {
    return picture_facts(config, open_split);
}

}  // namespace lockstep

#include "io/source_files.hpp"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "io/random_file.hpp"
#include "io/shown_path.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct GlobResult {
    glob_t found{};
    ~GlobResult() { ::globfree(&found); }
};

/// Whether it is a file. A link to nothing (or to itself) was one: left out silently it would make other data of a set.
bool is_file(const std::string& path, const char* key) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_regular_file(status)) return true;
    if (!error && fs::exists(status)) return false;
    const bool gone = status.type() == fs::file_type::not_found;
    fail(ErrorKind::kData, "{}: cannot read {}: {}", key, shown_path(path),
         gone ? "a link to nothing" : error.message());
}

std::vector<std::string> matches(const std::string& pattern, const char* key) {
    GlobResult result;
    std::vector<std::string> names;
    if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &result.found) != 0) return names;
    for (size_t i = 0; i < result.found.gl_pathc; ++i) {
        if (is_file(result.found.gl_pathv[i], key)) names.emplace_back(result.found.gl_pathv[i]);
    }
    return names;
}

std::vector<std::string> files_in(const std::string& folder, const char* key) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const bool hidden = entry.path().filename().string().starts_with(".");
        if (!hidden && is_file(entry.path().string(), key)) names.push_back(entry.path().string());
    }
    return names;
}

}  // namespace

std::vector<std::string> listed_files(const std::vector<std::string>& paths, const char* key) {
    if (paths.empty()) fail(ErrorKind::kUsage, "{}: not set; this format needs a path or a list of paths", key);
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        check_path(path, key);
        std::error_code error;
        if (fs::is_regular_file(path, error)) {
            files.push_back(path);
            continue;
        }
        const bool folder = fs::is_directory(path, error);
        std::vector<std::string> found;
        try {
            found = folder ? files_in(path, key) : matches(path, key);
        } catch (const fs::filesystem_error& failure) {
            fail(ErrorKind::kData, "{}: cannot read {}: {}", key, path, failure.code().message());
        }
        if (found.empty()) {
            if (fs::is_symlink(path, error)) is_file(path, key);  // says why it is none
            if (!folder && fs::exists(path, error))
                fail(ErrorKind::kData, "{}: cannot read {}: it is no file", key, path);
            fail(ErrorKind::kData, "{}: {}: {}", key, path,
                 folder ? "no file in this folder" : "no such file, and as a pattern it matches none");
        }
        std::sort(found.begin(), found.end());
        for (const std::string& file : found) check_path(file, key);
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

std::vector<std::string> source_files(const std::vector<std::string>& paths, const char* key) {
    std::vector<std::string> files = listed_files(paths, key);
    warn_of_repeated(files, key);
    return files;
}

void warn_of_repeated(const std::vector<std::string>& files, const char* key) {
    std::map<std::pair<dev_t, ino_t>, std::string> known;
    int64_t repeated = 0;
    std::string example;
    for (const std::string& file : files) {
        struct stat status {};
        if (::stat(file.c_str(), &status) != 0) continue;  // told when it is opened
        const auto [first, added] = known.try_emplace({status.st_dev, status.st_ino}, file);
        if (added || repeated++ > 0) continue;
        example = first->second == file ? fmt::format("{} is named twice", file)
                                        : fmt::format("{} and {} are the same", first->second, file);
    }
    if (repeated == 0) return;
    const std::string more = repeated == 1 ? "" : fmt::format(" (and {} more)", repeated - 1);
    warn("{}: {}{}: the samples in it count twice in every epoch", key, example, more);
}

void check_path(const std::string& path, const char* key) {
    if (!is_odd_path(path)) return;
    fail(ErrorKind::kUsage, "{}: {}: a control character in the name of a file; rename it", key, shown_path(path));
}

std::string file_fingerprint(const std::string& path) {
    const RandomFile file(path);
    uint64_t hash = 0;
    std::vector<std::byte> bytes(static_cast<size_t>(std::min(file.size(), int64_t{4} << 20)));
    const auto add = [&](int64_t begin, int64_t end) {  // piece by piece, each hashed on top of those before
        while (begin < end) {
            const auto count = static_cast<size_t>(std::min<int64_t>(end - begin, static_cast<int64_t>(bytes.size())));
            file.read(begin, std::span(bytes).first(count));
            hash = hash64(std::span(bytes).first(count), hash);
            begin += static_cast<int64_t>(count);
        }
    };
    if (file.size() <= kHashedWhole) {
        add(0, file.size());
    } else {
        add(0, kHashedEnd);
        add(file.size() - kHashedEnd, file.size());
    }
    return fmt::format("{} {} {}", fs::path(path).filename().string(), file.size(), hex16(hash));
}

std::string cache_name(const std::string& path, const std::string& fingerprint) {
    struct stat status {};
    ::stat(path.c_str(), &status);
    const std::string facts = fmt::format("{} {}.{}", fingerprint, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    const std::string hash = hex16(hash64(std::as_bytes(std::span(facts))));
    return fmt::format("{}-{}", fs::path(path).filename().string(), hash);
}

}  // namespace lockstep

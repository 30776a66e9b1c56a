#include "data/file_sets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "core/error.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

struct FileSet {
    std::string before, after;  // "…/train", ".gz"
    int digits = 5;
    std::set<int64_t> numbers;
};

std::string member(const FileSet& set, int64_t number, int64_t count) {
    return fmt::format("{}-{:0{}}-of-{:0{}}{}", set.before, number, set.digits, count, set.digits, set.after);
}

void check_complete(const std::vector<std::string>& files, const std::string& path, const char* key) {
    const std::regex member_name("(.*)-([0-9]{5,9})-of-([0-9]{5,9})(\\.[A-Za-z0-9.]*)?");
    std::map<std::pair<std::string, int64_t>, FileSet> sets;  // by what stands before the number, and the count
    std::set<std::string> names;
    for (const std::string& file : files) {
        std::smatch match;
        if (!std::regex_match(file, match, member_name)) continue;
        FileSet& set = sets[{match[1], std::stoll(match[3])}];
        set.before = match[1];
        set.after = match[4];
        set.digits = static_cast<int>(match[3].length());
        set.numbers.insert(std::stoll(match[2]));
        names.insert(std::filesystem::path(set.before).filename().string());
    }
    std::error_code ignored;
    if (names.size() > 1 && std::filesystem::is_directory(path, ignored)) {
        fail(ErrorKind::kData, "{}: {} holds several sets of files, {}; name one, as in \"{}/{}-*\"", key, path,
             fmt::join(names, " and "), path, *names.begin());
    }
    for (const auto& [id, set] : sets) {
        constexpr size_t kMostNamed = 8;
        // A name may promise a billion files: only as many are looked for as are there or named.
        const auto there = std::distance(set.numbers.begin(), set.numbers.lower_bound(id.second));
        const int64_t count = id.second - there;
        if (count == 0) continue;
        std::vector<std::string> missing;
        for (int64_t number = 0; number < id.second && missing.size() < kMostNamed; ++number) {
            if (!set.numbers.contains(number)) missing.push_back(member(set, number, id.second));
        }
        fail(ErrorKind::kData, "{}: {}: {} of {} files are missing: {}{}; fetch them, or list those that are meant",
             key, path, count, id.second, fmt::join(missing, ", "),
             count > static_cast<int64_t>(missing.size()) ? ", …" : "");
    }
}

}  // namespace

std::vector<std::string> complete_files(const std::vector<std::string>& paths, const char* key) {
    if (paths.empty()) return source_files(paths, key);  // says so
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        const std::vector<std::string> found = listed_files({path}, key);
        if (found.size() != 1 || found.front() != path) check_complete(found, path, key);
        files.insert(files.end(), found.begin(), found.end());
    }
    warn_of_repeated(files, key);
    return files;
}

}  // namespace lockstep

// The files that a data set is made of: from paths, folders and globs to a list, and what each file is, wherever it
// lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// What a fingerprint holds of contents: everything up to so many bytes, beyond that so many at each end.
inline constexpr int64_t kHashedWhole = int64_t{256} << 20;
inline constexpr int64_t kHashedEnd = int64_t{1} << 20;

/// Files for data.train or data.test (`key`): a file itself; of a folder the files in it, hidden ones left out; of a
/// glob what it matches; folders and globs in byte order of their names, whatever the locale. kUsage for none given,
/// kData where one is missing or matches nothing. Warns of files that are among them twice.
std::vector<std::string> source_files(const std::vector<std::string>& paths, const char* key);

/// The same without a warning where a file is among them twice.
std::vector<std::string> listed_files(const std::vector<std::string>& paths, const char* key);

/// Warns where a file (or folder) is among them more than once, by whatever name: some mean it, most do not.
void warn_of_repeated(const std::vector<std::string>& files, const char* key);

/// kUsage where the path is none that can be shown on one line of a message.
void check_path(const std::string& path, const char* key);

/// "name size hash": the name without its folder; the hash is of everything up to 256 MiB, beyond of the first and the
/// last MiB. kData where it cannot be read.
std::string file_fingerprint(const std::string& path);

/// A name for a cached copy made from the file: its own, its fingerprint and the time of its last change, so that not
/// even an edit in the middle of a large file is overlooked.
std::string cache_name(const std::string& path, const std::string& fingerprint);

}  // namespace lockstep

// Files as whole things: read, written so that they are complete or absent (temporary name, fsync, rename, fsync of the
// folder), unpacked. Errors name the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

std::vector<std::byte> read_file(const std::string& path);  // kData when missing or unreadable
std::vector<std::byte> gunzip(std::span<const std::byte> packed,
                              const std::string& name);  // kData; several members, checked
/// The first `bytes` of a file (all of a shorter one), unpacked where it is packed with gzip. kData as the two above.
std::vector<std::byte> read_file_start(const std::string& path, size_t bytes);
bool looks_gzipped(std::span<const std::byte> bytes);

/// Complete or absent. kRuntime (exit 1) on a full disk or a read-only folder; leaves nothing behind then.
void write_file_atomic(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomic(const std::string& path, const std::string& text);
/// Written and fsynced under its own name (inside a folder that is renamed as a whole).
void write_file_synced(const std::string& path, std::span<const std::byte> bytes);
void sync_folder(const std::string& path);

/// A text file that grows by whole lines, flushed when written.
class LineFile {
  public:
    /// Opens for appending at `keep_bytes` (the rest is cut off); creates it.
    LineFile(const std::string& path, int64_t keep_bytes);
    ~LineFile();
    LineFile(const LineFile&) = delete;
    LineFile& operator=(const LineFile&) = delete;
    void append(const std::string& line);  // adds '\n'; kRuntime on failure
    int64_t size() const;                  // bytes so far

  private:
    std::string path_;
    int fd_ = -1;
    int64_t size_ = 0;
};

}  // namespace lockstep

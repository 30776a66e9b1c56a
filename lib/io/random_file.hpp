// A file that is read in pieces, anywhere and by several threads at once: what is too large for memory stays on the
// disk. Errors name the path and the offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/descriptor.hpp"

namespace lockstep {

class RandomFile {
  public:
    /// Checks that it can be read. With keep_open = false it is opened anew for each read, for data sets of more files
    /// than a process may hold open. kData where it is missing, unreadable or a folder.
    explicit RandomFile(std::string path, bool keep_open = true);

    const std::string& path() const { return path_; }
    int64_t size() const { return size_; }
    /// Fills `out` from `offset` on. kData where the file ends before, or the disk fails.
    void read(int64_t offset, std::span<std::byte> out) const;

  private:
    std::string path_;
    Descriptor file_;
    int64_t size_ = 0;
};

}  // namespace lockstep

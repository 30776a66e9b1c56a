// A file that is complete or absent: written piece by piece under a temporary name in its own folder, and renamed when
// everything is on the disk. Not committed (an error, an exception) means removed. A device or a pipe is written to as
// it is: renaming would put a file in its place.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "io/descriptor.hpp"

namespace lockstep {

class AtomicFile {
  public:
    explicit AtomicFile(std::string path);  // kRuntime where the folder cannot be written
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(std::span<const std::byte> bytes);  // kRuntime on a full disk
    void commit();                                 // fsync, rename, fsync of the folder

  private:
    std::string path_;
    std::string temporary_;  // empty once renamed, and for a device or a pipe
    Descriptor file_;
};

}  // namespace lockstep

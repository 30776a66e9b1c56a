// A file packed with gzip, unpacked onto the disk piece by piece: for what does not fit into memory.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

bool is_gzipped(const std::string& path);  // by its first bytes, never its name; kData where it cannot be read

/// kData for damaged or truncated data, kRuntime for a full disk.
void unpack_file(const std::string& path, const std::string& to);

}  // namespace lockstep

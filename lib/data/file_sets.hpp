// Sets of files named NAME-00000-of-00008 …, of which none may be missing unseen.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// source_files (io/source_files.hpp), and kData where a folder or a glob among `paths` gives a part of such a set,
/// naming what is missing, or a folder holds several sets. Files that are listed one by one are taken as they are.
std::vector<std::string> complete_files(const std::vector<std::string>& paths, const char* key);

}  // namespace lockstep

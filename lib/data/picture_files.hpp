// Which files below a folder are pictures: by their names, without what is hidden.
#pragma once

#include <filesystem>

#include "core/function_ref.hpp"

namespace lockstep {

/// .jpg, .jpeg or .png, in any case.
bool named_as_picture(const std::filesystem::path& path);

/// Of a name that begins with a dot, such as .ipynb_checkpoints or macOS's ._1.png.
bool is_hidden(const std::filesystem::path& path);

/// kData for a link to nothing, which was a picture or a folder of them, and for one that leads back to a folder that
/// it lies in. `link` must be a link.
void check_link(const std::filesystem::path& link);

/// All files and folders below `folder`, links followed, in the system's order. What is hidden is left out, a hidden
/// folder with all that is in it. kData as check_link; kUsage, naming `key`, for a path that no report could show;
/// std::filesystem::filesystem_error where a folder cannot be read.
void for_each_below(const std::filesystem::path& folder, const char* key,
                    FunctionRef<void(const std::filesystem::directory_entry&)> action);

}  // namespace lockstep

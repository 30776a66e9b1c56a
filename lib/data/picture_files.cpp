#include "data/picture_files.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/error.hpp"
#include "io/source_files.hpp"

namespace lockstep {

namespace fs = std::filesystem;

bool named_as_picture(const fs::path& path) {
    std::string end = path.extension().string();
    std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
    return end == ".jpg" || end == ".jpeg" || end == ".png";
}

bool is_hidden(const fs::path& path) {
    return path.filename().string().starts_with(".");
}

// Left out silently, a broken link would make other data of a set. One that leads back would be told by a word of the
// system without its name.
void check_link(const fs::path& link) {
    std::error_code error;
    const std::string target = fs::canonical(link, error).string();
    if (error == std::errc::too_many_symbolic_link_levels) {
        fail(ErrorKind::kData, "{}: a link that leads to itself", link.string());
    }
    if (error) fail(ErrorKind::kData, "{}: a link to nothing", link.string());
    const std::string here = fs::canonical(link.parent_path(), error).string();
    if (here == target || here.starts_with(target + "/"))
        fail(ErrorKind::kData, "{}: a link to a folder that it lies in", link.string());
}

void for_each_below(const fs::path& folder, const char* key, FunctionRef<void(const fs::directory_entry&)> action) {
    fs::recursive_directory_iterator it(folder, fs::directory_options::follow_directory_symlink);
    for (; it != fs::recursive_directory_iterator(); ++it) {
        if (is_hidden(it->path())) {
            it.disable_recursion_pending();
            continue;
        }
        check_path(it->path().native(), key);
        if (it->is_symlink()) check_link(it->path());
        action(*it);
    }
}

}  // namespace lockstep

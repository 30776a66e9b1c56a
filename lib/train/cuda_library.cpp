#include "train/cuda_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/ranges.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "config/config.hpp"
#include "core/error.hpp"
#include "plugin_interface.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "LOCKSTEP_DEBUG_CUDA_PLUGIN";
constexpr const char* kFile = "liblockstep_cuda.so";

struct CloseLibrary {
    void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

/// Null where the file is absent or cannot be loaded; then `why` says so.
Library open_library(const std::string& path, std::string& why) {
    // All of its symbols now: one that is missing must not end a run in the middle. They stay its own, but where this
    // executable has the same function, the library uses the executable's: there is one log, and one type of each
    // error.
    Library library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    if (library) return library;
    const char* reason = dlerror();
    why = reason != nullptr ? reason : path + " cannot be loaded";
    return nullptr;
}

}  // namespace

bool gpu_may_be_here() {
    if (environment_variable(kVariable)) return true;
    if (access("/dev/nvidiactl", F_OK) == 0) return true;
    return Library(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) != nullptr;  // as under WSL
}

std::vector<std::string> cuda_library_places() {
    if (const auto named = environment_variable(kVariable)) return {*named};
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    return {folder / kFile, (folder / LOCKSTEP_PLUGIN_FOLDER / kFile).lexically_normal()};
}

std::unique_ptr<CudaPlugin> load_cuda_library() {
    const std::vector<std::string> places = cuda_library_places();
    const auto found = std::find_if(places.begin(), places.end(), [](const std::string& place) {
        std::error_code error;
        return fs::exists(place, error);
    });
    if (found == places.end()) {
        fail(ErrorKind::kUsage,
             "Lockstep's CUDA library is not there (looked for {}): build with LOCKSTEP_CUDA=ON, or use device.backend "
             "= "
             "\"cpu\"",
             fmt::join(places, " and "));
    }
    std::string why;
    Library library = open_library(*found, why);
    if (!library) {
        fail(ErrorKind::kUsage,
             "Lockstep's CUDA library cannot be loaded: {}; use device.backend = \"cpu\" to do without", why);
    }
    void* const symbol = dlsym(library.get(), kCudaPluginEntry);
    if (symbol == nullptr) {
        fail(ErrorKind::kUsage, "{} is no CUDA library of Lockstep: it has no {}()", *found, kCudaPluginEntry);
    }
    const CudaPluginEntry* entry = reinterpret_cast<CudaPluginFunction>(symbol)();
    if (std::strcmp(entry->interface_id, LOCKSTEP_PLUGIN_INTERFACE) != 0) {
        fail(ErrorKind::kUsage,
             "{} is of another build of Lockstep ({}) than this executable ({}): build or install both together",
             *found, entry->interface_id, LOCKSTEP_PLUGIN_INTERFACE);
    }
    return std::unique_ptr<CudaPlugin>(entry->make());
}

}  // namespace lockstep

#include "train/doctor_folder.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"

namespace lockstep {

void to_json(nlohmann::json& json, const FolderFacts& facts) {
    json = {{"path", facts.path},
            {"existing", facts.existing},
            {"fault", facts.fault},
            {"free_bytes", facts.free_bytes},
            {"blind", facts.blind}};
}

namespace {

namespace fs = std::filesystem;

/// A file of our own, gone when this object is.
class Probe {
  public:
    explicit Probe(const std::string& folder) : path_(folder + "/.lockstep-env-XXXXXX") {
        descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);
        const std::array<char, 16> text{"lockstep env\n"};
        if (descriptor_ < 0 || ::write(descriptor_, text.data(), text.size()) < 0 || ::fsync(descriptor_) != 0) {
            fault_ = std::strerror(errno);
        }
    }
    ~Probe() {
        if (descriptor_ < 0) return;
        ::close(descriptor_);
        ::unlink(path_.c_str());
    }
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;
    const std::string& path() const { return path_; }
    const std::string& fault() const { return fault_; }

  private:
    std::string path_;
    std::string fault_;
    int descriptor_ = -1;
};

std::string nearest_existing(const fs::path& path) {
    std::error_code ignored;
    fs::path folder = path;
    while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
    return folder.string();
}

/// A network file system may show a new file a moment later.
bool appears(const std::string& file) {
    using namespace std::chrono;
    for (const auto deadline = steady_clock::now() + 1s; steady_clock::now() < deadline;) {
        if (access(file.c_str(), F_OK) == 0) return true;
        std::this_thread::sleep_for(20ms);
    }
    return access(file.c_str(), F_OK) == 0;
}

}  // namespace

FolderFacts look_at_folder(Communicator& comm, const std::string& path) {
    FolderFacts facts;
    std::error_code ignored;
    fs::path asked = fs::absolute(path, ignored).lexically_normal();
    if (!asked.has_filename() && asked.has_relative_path()) asked = asked.parent_path();  // "x/" is x
    facts.path = comm.broadcast(0, asked.string());
    std::unique_ptr<Probe> probe;
    if (comm.rank() == 0) {
        facts.existing = nearest_existing(facts.path);
        struct statvfs system {};
        if (!fs::is_directory(facts.existing, ignored)) {
            facts.fault = fmt::format("{} is not a folder", facts.existing);
        } else if (statvfs(facts.existing.c_str(), &system) == 0) {
            facts.free_bytes = static_cast<int64_t>(system.f_bavail) * static_cast<int64_t>(system.f_frsize);
        }
        if (facts.fault.empty()) probe = std::make_unique<Probe>(facts.existing);
        if (probe && !probe->fault().empty()) facts.fault = probe->fault();
    }
    facts.existing = comm.broadcast(0, facts.existing);
    facts.fault = comm.broadcast(0, facts.fault);
    facts.free_bytes = std::stoll(comm.broadcast(0, std::to_string(facts.free_bytes)));
    if (!facts.fault.empty()) return facts;
    const std::string file = comm.broadcast(0, probe ? probe->path() : "");
    const bool sees = comm.rank() == 0 || appears(file);
    const std::vector<std::string> views = comm.all_gather(std::string(sees ? "sees" : ""));
    for (std::size_t rank = 0; rank < views.size(); ++rank) {
        if (views[rank].empty()) facts.blind.push_back(static_cast<int>(rank));
    }
    return facts;
}

}  // namespace lockstep

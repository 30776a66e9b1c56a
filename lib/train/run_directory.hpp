// The folder of a run: what is in it, whether one is there already, and what a resume goes on from. Rank 0 alone uses
// it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "io/folder_lock.hpp"

namespace lockstep {

enum class ResumeMode { kNever, kAuto, kPath };

class RunDirectory {
  public:
    explicit RunDirectory(std::string path) : path_(std::move(path)) {}

    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    std::string checkpoints() const { return file("checkpoints"); }

    /// Whether any file of a run is there.
    bool holds_run() const;
    /// The steps of its end event, or -1 if it has none.
    int64_t finished_steps() const;
    /// Whether that event says that it stopped early.
    bool finished_early() const;
    /// Of model.safetensors, as the end event tells it; empty without one.
    std::string final_sha256() const;
    /// Keeps other processes from training into the folder, if there is one; kUsage when one does already.
    void claim();
    /// Creates and claims the folder, and clears it of what a killed run left half-written. kUsage for `kNever` and
    /// `kPath` when it holds a run; kRuntime when it cannot be made or written.
    void prepare(ResumeMode mode);
    /// What a killed run left half-written; a claimed folder's alone.
    void clear_leftovers() const;

  private:
    void refuse_run(ResumeMode mode) const;
    nlohmann::json end_event() const;

    std::string path_;
    FolderLock lock_;
};

struct RunFacts {
    std::vector<std::string> argv;
    std::string version;
    int world = 1;
    std::vector<std::string> hosts;  // of each rank
    std::vector<std::string> devices;
    std::string arithmetic;
    std::string start;                // ISO 8601, UTC
    std::string end;                  // empty while it runs
    std::vector<std::string> device;  // Backend::details of the first rank, known at the end
};
std::string run_json(const RunFacts& facts);

/// Now, as 2026-11-30T07:01:53Z.
std::string utc_now();
/// Now, as 20261130-070153, for default folder names.
std::string compact_now();

}  // namespace lockstep

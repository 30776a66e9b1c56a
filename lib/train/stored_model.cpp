#include "train/stored_model.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "config/key_table.hpp"
#include "core/error.hpp"
#include "io/files.hpp"
#include "train/agreement.hpp"
#include "train/checkpoint.hpp"
#include "train/run_directory.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// What `latest` and `best` say, where the path is one of them.
std::string named_checkpoint(const std::string& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return path;
    const std::vector<std::byte> bytes = read_file(path);
    const std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return (fs::path(path).parent_path() / name.substr(0, name.find('\n'))).string();
}

}  // namespace

StoredModel read_run(const std::string& directory, const std::vector<std::string>& overrides) {
    const RunDirectory run(directory);
    if (!run.holds_run()) fail(ErrorKind::kUsage, "{}: holds no run", directory);
    StoredModel stored;
    stored.config =
        load_config({{run.file("config.resolved.toml")}, {}, overrides, std::filesystem::current_path().string()})
            .config;
    stored.step = run.finished_steps();
    if (stored.step >= 0 && std::filesystem::exists(run.file("model.safetensors"))) {
        stored.where = run.file("model.safetensors");
        stored.model = read_file(stored.where);
        return stored;
    }
    const std::string newest = newest_checkpoint(run.checkpoints());
    if (newest.empty())
        fail(ErrorKind::kUsage, "{}: the run has neither finished nor written a checkpoint yet", directory);
    return read_from_checkpoint(newest, stored.config);
}

StoredModel read_from_checkpoint(const std::string& path, const Config& config) {
    Checkpoint checkpoint = read_checkpoint(named_checkpoint(path));
    return {config, std::move(checkpoint.model), checkpoint.path + "/model.safetensors", checkpoint.state.step};
}

StoredModel read_on_first(Communicator& comm, FunctionRef<StoredModel()> read) {
    StoredModel stored;
    agree_on_first(comm, [&] { comm.work_aside([&] { stored = read(); }); });
    const std::string config = comm.broadcast(0, comm.rank() == 0 ? config_to_json(stored.config) : "");
    const std::string step = comm.broadcast(0, std::to_string(stored.step));
    stored.where = comm.broadcast(0, stored.where);
    comm.broadcast(0, stored.model);
    if (comm.rank() != 0) {
        stored.config = config_from_json(config);
        stored.step = std::stoll(step);
    }
    return stored;
}

}  // namespace lockstep

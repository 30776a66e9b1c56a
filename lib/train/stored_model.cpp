#include "train/stored_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/key_table.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
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
    constexpr std::uintmax_t kLongestName = 256;
    if (fs::file_size(path, ignored) <= kLongestName) {
        const std::vector<std::byte> bytes = read_file(path);
        const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        const std::string name = text.substr(0, text.find('\n'));
        const fs::path named = fs::path(path).parent_path() / name;
        if (!name.empty() && fs::is_directory(named, ignored)) return named.string();
    }
    fail(ErrorKind::kData,
         "{}: neither a checkpoint, which is a folder, nor a file that names one beside it, such as checkpoints/best",
         path);
}

/// Of a run's newest checkpoint. A damaged one is no reason to refuse a model that lies beside it.
std::string train_data_of(const RunDirectory& run) {
    const std::string newest = newest_checkpoint(run.checkpoints());
    if (newest.empty()) return "";
    const nlohmann::json state = nlohmann::json::parse(read_checkpoint_state_text(newest), nullptr, false);
    const nlohmann::json::json_pointer place("/data/train");
    return state.is_object() && state.contains(place) && state[place].is_string() ? state[place] : "";
}

/// What columns and classes are learned from: of tables the rows that are not held out, else all of the data, whoever
/// decodes its pictures.
std::string learned_part(const Config& config, const std::string& fingerprint) {
    if (config.data.format == "csv") return fingerprint;
    const std::string whole = fingerprint.substr(0, fingerprint.rfind(" without the "));
    return config.data.format == "image_folder" ? whole.substr(0, whole.rfind(", ")) : whole;
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
    std::error_code ignored;
    if (stored.step >= 0 && fs::exists(run.file("model.safetensors"), ignored)) {
        stored.where = run.file("model.safetensors");
        stored.model = read_file(stored.where);
        Sha256 hash;
        hash.update(stored.model);
        if (const std::string told = run.final_sha256(); !told.empty() && told != hash.hex()) {
            fail(ErrorKind::kData,
                 "{}: damaged: its sha256 is not the one of the end event in metrics.jsonl; fetch it again, or take a "
                 "checkpoint",
                 stored.where);
        }
        stored.train_data = train_data_of(run);
        return stored;
    }
    const std::string newest = newest_checkpoint(run.checkpoints());
    if (newest.empty())
        fail(ErrorKind::kUsage, "{}: the run has neither finished nor written a checkpoint yet", directory);
    return read_from_checkpoint(newest, stored.config);
}

StoredModel read_from_checkpoint(const std::string& path, const Config& config) {
    Checkpoint checkpoint = read_checkpoint(named_checkpoint(path));
    return {config, std::move(checkpoint.model), checkpoint.path + "/model.safetensors", checkpoint.state.step,
            checkpoint.state.train_data};
}

void check_learned_from(const StoredModel& stored, const Dataset& train) {
    const std::string& format = stored.config.data.format;
    const bool learns = format == "csv" || format == "libsvm" || format == "image_folder";
    if (!learns || stored.train_data.empty()) return;
    const std::string then = learned_part(stored.config, stored.train_data);
    const std::string now = learned_part(stored.config, train.fingerprint());
    if (then == now) return;
    fail(
        ErrorKind::kUsage,
        "{}: columns and classes are learned from data.train, which is no longer what the run was trained on ({} then, "
        "{} now); put it back, or train again",
        stored.where, then, now);
}

StoredModel read_on_first(Communicator& comm, FunctionRef<StoredModel()> read) {
    StoredModel stored;
    agree_on_first(comm, [&] { comm.work_aside([&] { stored = read(); }); });
    const std::string config = comm.broadcast(0, comm.rank() == 0 ? config_to_json(stored.config) : "");
    const std::string step = comm.broadcast(0, std::to_string(stored.step));
    stored.where = comm.broadcast(0, stored.where);
    stored.train_data = comm.broadcast(0, stored.train_data);
    comm.broadcast(0, stored.model);
    if (comm.rank() != 0) {
        stored.config = config_from_json(config);
        stored.step = std::stoll(step);
    }
    return stored;
}

}  // namespace lockstep

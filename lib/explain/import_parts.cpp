// How another trainer's workers cut a batch, in shards: as many as there were workers, so that each rank of as many
// finds one. And what follows from the parts of a batch: passes over them, and whose statistics batch norm takes.
#include <algorithm>

#include "config/key.hpp"
#include "explain/config_import.hpp"

namespace lockstep {
namespace {

const int64_t kDefaultShards = Config::BatchSettings{}.shards;  // not constexpr: BatchSettings holds a string

void import_passes(const BatchParts& parts, Imported& config) {
    if (!config.has("batch_norm.scope", "global")) {
        config.set("batch.micro", parts.each,
                   fmt::format("{}: computed at once there; changes no bit", parts.passes_flag));
        return;
    }
    config.remark(
        fmt::format("{}: no batch.micro = {}, since batch norm's statistics are of the whole batch, which so is in "
                    "memory at once",
                    parts.passes_flag, parts.each));
    config.remark("where it does not fit: more ranks, or batch_norm.scope = \"shard\", with batch.micro");
}

}  // namespace

void import_parts(const BatchParts& parts, Imported& config) {
    const auto most = std::min(static_cast<int64_t>(key_of("batch.shards").range.most), parts.batch);
    const int64_t all_pieces = parts.workers * parts.passes;
    const bool global = config.has("batch_norm.scope", "global");
    if (parts.passes > 1) import_passes(parts, config);
    // batch.micro is in whole shards: a worker's pass is one, else a shard would be more than it allows.
    const bool micro = parts.passes > 1 && !global;
    const int64_t pieces = micro ? all_pieces : parts.workers;
    if (pieces > kDefaultShards) {
        const int64_t shards = std::min(pieces, most);
        const std::string passes = micro ? fmt::format(" x {} passes", parts.passes) : "";
        const std::string limit = shards < pieces ? fmt::format(", at most {} here", shards) : "";
        config.set("batch.shards", shards,
                   fmt::format("{}{}{}; a rank computes whole shards: of more ranks some are idle; bits follow from it",
                               counted(parts.workers, parts.who), passes, limit));
    }
    if (parts.gpus_unknown) {
        config.remark(
            fmt::format("the command does not say how many GPUs a node has: with more than {} in all write "
                        "batch.shards = that many",
                        std::max(kDefaultShards, parts.workers)));
    }
    if (!parts.own_norm || !global || (all_pieces == 1 && !parts.gpus_unknown)) return;
    const std::string owner = parts.gpus_unknown ? "GPU" : std::string(parts.who);
    const std::string samples = parts.gpus_unknown ? "its own samples" : counted(parts.each, "sample") + " of its own";
    const std::string shards = parts.gpus_unknown ? "the number of GPUs" : std::to_string(std::min(all_pieces, most));
    config.change(
        fmt::format("batch norm: over {} for each {} there, over the whole batch here (batch_norm.scope = \"global\"); "
                    "nearly as there: batch_norm.scope = \"shard\" with batch.shards = {}",
                    samples, owner, shards));
}

void name_missing_model(Imported& config) {
    config.change("no --model: the network of the config's defaults (mlp) is NOT yours; write [model]");
}

void name_center_crop(std::string_view flags, int64_t side, Imported& config) {
    config.change(fmt::format(
        "{}{}: a resize and a crop of the centre there (by default Resize(256), CenterCrop(224)), the whole picture "
        "resized to {} x {} here: accuracies differ a little",
        flags.empty() ? "evaluation" : flags, flags.empty() ? "" : ", of evaluation", side, side));
}

}  // namespace lockstep

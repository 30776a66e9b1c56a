// The config as each rank reads it: its faults, what differs between ranks and whether it may, and whether every rank
// can read the data that it names.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/key_table.hpp"
#include "train/doctor_findings.hpp"

namespace lockstep {
namespace {

std::string origin_of(const RankFacts& rank, const std::string& key) {
    const auto found = rank.config.origins.find(key);
    return found == rank.config.origins.end() ? "default" : found->second;
}

/// Of each rank against rank 0, as training compares them.
void compare_configs(const ClusterFacts& facts, Findings& findings) {
    const RankFacts& first = facts.ranks.front();
    if (!first.config.fault.empty()) return;
    const Config config = config_from_json(first.config.json);
    for (std::size_t rank = 1; rank < facts.ranks.size(); ++rank) {
        const RankFacts& other = facts.ranks[rank];
        if (!other.config.fault.empty() || other.config.json == first.config.json) continue;
        for (const KeyDifference& d : config_differences(config, config_from_json(other.config.json))) {
            const bool bits = d.effect == KeyEffect::kBits;
            const std::string text = fmt::format("{} = {} on {} on {} (from {}), {} on rank 0 (from {})", d.key,
                                                 d.right, ranks_text({static_cast<int>(rank)}), other.host.name,
                                                 origin_of(other, d.key), d.left, origin_of(first, d.key));
            findings.push_back({bits ? Severity::kFault : Severity::kNote,
                                "settings",
                                text,
                                bits ? "train refuses unequal values: give all ranks one (mpirun -x NAME hands a "
                                       "variable to other hosts)"
                                : d.effect == KeyEffect::kShared
                                    ? "legal: rank 0's value holds for all"
                                    : "legal: each rank follows its own, no bit depends on it",
                                {static_cast<int>(rank)}});
        }
    }
}

void examine_files(const ClusterFacts& facts, Findings& findings) {
    std::map<std::pair<std::string, std::string>, std::vector<int>> missing;  // key and path, reason
    std::map<std::string, std::map<int64_t, std::vector<int>>> sizes;         // of each path
    std::size_t seen = 0;
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
        for (const FileFacts& file : facts.ranks[rank].config.files) {
            const int number = static_cast<int>(rank);
            if (file.bytes < 0) missing[{fmt::format("{}: {}", file.key, file.path), file.reason}].push_back(number);
            if (file.bytes >= 0) sizes[file.path][file.bytes].push_back(number);
            ++seen;
        }
    }
    for (const auto& [what, ranks] : missing) {
        findings.push_back({Severity::kFault, "data",
                            fmt::format("{} cannot be read by {}: {}", what.first, ranks_text(ranks), what.second),
                            "every rank reads its own samples: copy the file to every host, or to a shared folder",
                            ranks});
    }
    bool alike = missing.empty();
    for (const auto& [path, by_size] : sizes) {
        if (by_size.size() == 1) continue;
        alike = false;
        std::string text;
        for (const auto& [bytes, ranks] : by_size)
            text += fmt::format("{}{} bytes on {}", text.empty() ? "" : ", ", bytes, ranks_text(ranks));
        findings.push_back({Severity::kWarning,
                            "data",
                            fmt::format("{} is not one file: {}", path, text),
                            "train refuses other contents: copy the same files to every host",
                            {}});
    }
    if (alike && seen > 0) {
        findings.push_back({Severity::kOk,
                            "data",
                            fmt::format("{} of the config can be read by every rank", count_text(sizes.size(), "file")),
                            "",
                            {}});
    }
}

}  // namespace

void examine_config(const ClusterFacts& facts, Findings& findings) {
    for (const auto& [fault, ranks] : groups_of(facts, [](const RankFacts& r) { return r.config.fault; })) {
        for (std::size_t at = 0; at < fault.size();) {
            const std::size_t end = std::min(fault.find('\n', at), fault.size());
            const bool all = ranks.size() == facts.ranks.size();
            findings.push_back({Severity::kFault, "config",
                                fmt::format("{}{}", all ? "" : ranks_text(ranks) + ": ", fault.substr(at, end - at)),
                                "train refuses it on every rank", ranks});
            at = end + 1;
        }
    }
    if (!facts.config_given) return;
    compare_configs(facts, findings);
    examine_files(facts, findings);
    const RankFacts& first = facts.ranks.front();
    if (!first.config.fault.empty()) return;
    const int64_t shards = config_from_json(first.config.json).batch.shards;
    const auto world = static_cast<int64_t>(facts.ranks.size());
    if (world > shards) {
        findings.push_back(
            {Severity::kWarning,
             "shards",
             fmt::format("{} ranks but batch.shards = {}: {}", world, shards,
                         world - shards == 1 ? "1 rank has nothing to do"
                                             : fmt::format("{} ranks have nothing to do", world - shards)),
             "start fewer ranks; more shards are another run with other bits",
             {}});
    }
}

}  // namespace lockstep

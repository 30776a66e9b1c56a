// What differs between the ranks of a job, and whether it may. A version, an arithmetic and every setting that can
// change a bit must be equal; all else is legal and listed, since it explains why one rank is slow or behaves oddly.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "config/key.hpp"
#include "config/key_table.hpp"
#include "train/doctor_findings.hpp"

namespace lockstep {
namespace {

using Getter = std::function<std::string(const RankFacts&)>;

/// Ranks by what they have, in the order of their lowest rank.
std::vector<std::pair<std::string, std::vector<int>>> groups_of(const ClusterFacts& facts, const Getter& get) {
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
        const std::string value = get(facts.ranks[rank]);
        auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == value; });
        if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
        group->second.push_back(static_cast<int>(rank));
    }
    return groups;
}

struct Comparison {
    Severity severity;
    const char* subject;
    const char* what;
    Getter get;
    const char* advice;
};

/// True where all ranks have the same; else a finding that names who has what.
bool same(const ClusterFacts& facts, const Comparison& comparison, Findings& findings) {
    const auto groups = groups_of(facts, comparison.get);
    if (groups.size() == 1) return true;
    std::string text;
    std::vector<int> others;
    for (const auto& [value, ranks] : groups) {
        text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", value.empty() ? "none" : value, ranks_text(ranks));
        if (&value != &groups.front().first) others.insert(others.end(), ranks.begin(), ranks.end());
    }
    std::sort(others.begin(), others.end());
    findings.push_back({comparison.severity, comparison.subject, fmt::format("{} differs: {}", comparison.what, text),
                        comparison.advice, others});
    return false;
}

/// Only the libraries that some rank lacks.
void compare_libraries(const ClusterFacts& facts, Findings& findings, std::string& alike) {
    std::map<std::string, std::vector<int>> users;
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
        for (const std::string& name : facts.ranks[rank].program.libraries)
            users[name].push_back(static_cast<int>(rank));
    }
    std::string text;
    for (const auto& [name, ranks] : users) {
        if (ranks.size() != facts.ranks.size())
            text += fmt::format("{}{} on {} only", text.empty() ? "" : ", ", name, ranks_text(ranks));
    }
    if (text.empty()) {
        alike += ", libraries";
    } else {
        findings.push_back(
            {Severity::kNote, "libraries", "libraries differ: " + text + " (legal: no bit depends on them)", "", {}});
    }
}

const Key* key_of_variable(const std::string& variable) {
    for (const Key& key : config_keys()) {
        if (environment_name(key.name) == variable) return &key;
    }
    return nullptr;
}

/// A variable that some rank lacks or has otherwise.
void compare_variable(const ClusterFacts& facts, const std::string& name, Findings& findings) {
    const Getter get = [&](const RankFacts& rank) {
        const auto found = rank.environment.find(name);
        return found == rank.environment.end() ? std::string("not set") : fmt::format("\"{}\"", found->second);
    };
    const Key* key = key_of_variable(name);
    if (key == nullptr) {
        same(facts, {Severity::kNote, "environment", name.c_str(), get, "legal: no bit depends on it"}, findings);
        return;
    }
    if (facts.config_given) return;  // compared as the keys that they set
    const bool bits = key->effect == KeyEffect::kBits;
    same(
        facts,
        {bits ? Severity::kWarning : Severity::kNote, "settings", name.c_str(), get,
         bits ? "train refuses unequal values: give all ranks one (mpirun -x NAME hands a variable to other hosts), or "
                "set the key with --set"
              : "legal: no bit depends on it"},
        findings);
}

void compare_environment(const ClusterFacts& facts, Findings& findings) {
    std::set<std::string> names;
    for (const RankFacts& rank : facts.ranks) {
        for (const auto& [name, value] : rank.environment) names.insert(name);
    }
    for (const std::string& name : names) compare_variable(facts, name, findings);
    if (names.contains("OMP_NUM_THREADS")) {
        findings.push_back({Severity::kNote,
                            "environment",
                            "OMP_NUM_THREADS is set; Lockstep does not read it (device.threads decides)",
                            "",
                            {}});
    }
}

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

void examine_equality(const ClusterFacts& facts, Findings& findings) {
    if (facts.ranks.size() == 1) return;
    const Comparison comparisons[] = {
        {Severity::kFault, "version", "version", [](const RankFacts& r) { return r.program.version; },
         "train refuses mixed versions: run one build everywhere"},
        {Severity::kFault, "arithmetic", "numeric fingerprint", [](const RankFacts& r) { return r.program.arithmetic; },
         "train refuses mixed arithmetic: run one build everywhere"},
        {Severity::kWarning, "mpi", "MPI library", [](const RankFacts& r) { return r.program.mpi; },
         "install one MPI everywhere: mixed ones may not understand each other"},
        {Severity::kNote, "binary", "binary", [](const RankFacts& r) { return r.program.binary; },
         "legal as long as version and arithmetic agree"},
        {Severity::kNote, "compiler", "compiler",
         [](const RankFacts& r) { return fmt::format("{} {}", r.program.compiler, r.program.build_type); },
         "legal: no bit depends on it"},
        {Severity::kNote, "cpu", "CPU", [](const RankFacts& r) { return r.host.cpu; },
         "legal: no bit depends on it; the slowest sets the pace"},
        {Severity::kNote, "kernel", "kernel", [](const RankFacts& r) { return r.host.kernel; },
         "legal: no bit depends on it"},
        {Severity::kNote, "isa", "instruction set", [](const RankFacts& r) { return r.device.isa; },
         "legal: no bit depends on it; the slowest sets the pace"},
    };
    std::string alike;
    for (const Comparison& comparison : comparisons) {
        if (same(facts, comparison, findings)) alike += fmt::format("{}{}", alike.empty() ? "" : ", ", comparison.what);
    }
    compare_libraries(facts, findings, alike);
    const std::size_t before = findings.size();
    compare_environment(facts, findings);
    if (findings.size() == before) alike += ", environment";
    if (!alike.empty()) {
        findings.push_back({Severity::kOk, "equal", fmt::format("the same on all ranks: {}", alike), "", {}});
    }
}

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
             fmt::format("{} ranks but batch.shards = {}: {} ranks have nothing to do", world, shards, world - shards),
             "start fewer ranks; more shards are another run with other bits",
             {}});
    }
}

}  // namespace lockstep

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

struct Comparison {
    Severity severity;
    const char* subject;
    const char* what;
    RankText get;
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
    const RankText get = [&](const RankFacts& rank) {
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

}  // namespace lockstep

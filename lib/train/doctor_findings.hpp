// What the facts of a job mean: each finding says how bad it is, what was found, where, and what to change. Pure
// functions of the facts, so that a test can show them clusters that it does not have.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "train/doctor_facts.hpp"
#include "train/doctor_folder.hpp"
#include "train/doctor_network.hpp"

namespace lockstep {

struct ClusterFacts {
    std::vector<RankFacts> ranks;
    NetworkFacts network;
    FolderFacts folder;
    bool config_given = false;  // by -c: then its data must be there, too
};

enum class Severity {
    kOk,
    kNote,     // worth knowing: legal, and no bit depends on it
    kWarning,  // slower than need be, or likely to fail later
    kFault,    // training would be refused or would fail
};

struct Finding {
    Severity severity = Severity::kOk;
    std::string subject;  // one word, for scripts: "binding"
    std::string text;
    std::string advice;      // what to change; "" where nothing need be
    std::vector<int> ranks;  // concerned; empty: all, or the job as a whole
};
using Findings = std::vector<Finding>;

/// All findings, the worst first.
Findings examine(const ClusterFacts& facts);

// Its parts, each in the file named.
void examine_launch(const ClusterFacts& facts, Findings& findings);     // doctor_launch.cpp
void examine_cores(const ClusterFacts& facts, Findings& findings);      // doctor_cores.cpp
void examine_gpus(const ClusterFacts& facts, Findings& findings);       // doctor_gpus.cpp
void examine_equality(const ClusterFacts& facts, Findings& findings);   // doctor_equality.cpp
void examine_config(const ClusterFacts& facts, Findings& findings);     // doctor_config.cpp
void examine_resources(const ClusterFacts& facts, Findings& findings);  // doctor_resources.cpp
void examine_network(const ClusterFacts& facts, Findings& findings);    // doctor_resources.cpp

/// The ranks of one host, in order.
struct HostRanks {
    std::string host;
    std::vector<int> ranks;
};
std::vector<HostRanks> ranks_by_host(const std::vector<RankFacts>& ranks);

/// Ranks by what they have, in the order of their lowest rank.
using RankText = std::function<std::string(const RankFacts&)>;
std::vector<std::pair<std::string, std::vector<int>>> groups_of(const ClusterFacts& facts, const RankText& get);

const char* severity_name(Severity severity);
/// "rank 1", "ranks 0-3, 7".
std::string ranks_text(const std::vector<int>& ranks);
/// "4 ranks", "1 rank".
std::string count_text(std::size_t count, const char* what);

void to_json(nlohmann::json& json, const Finding& finding);

}  // namespace lockstep

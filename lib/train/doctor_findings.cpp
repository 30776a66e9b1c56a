#include "train/doctor_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lockstep {

Findings examine(const ClusterFacts& facts) {
    Findings findings;
    examine_launch(facts, findings);
    examine_equality(facts, findings);
    examine_config(facts, findings);
    examine_cores(facts, findings);
    examine_gpus(facts, findings);
    examine_resources(facts, findings);
    examine_network(facts, findings);
    std::stable_sort(findings.begin(), findings.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    return findings;
}

std::vector<HostRanks> ranks_by_host(const std::vector<RankFacts>& ranks) {
    std::vector<HostRanks> hosts;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const std::string& name = ranks[rank].host.name;
        auto host = std::find_if(hosts.begin(), hosts.end(), [&](const HostRanks& h) { return h.host == name; });
        if (host == hosts.end()) host = hosts.insert(hosts.end(), {name, {}});
        host->ranks.push_back(static_cast<int>(rank));
    }
    return hosts;
}

std::vector<std::pair<std::string, std::vector<int>>> groups_of(const ClusterFacts& facts, const RankText& get) {
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
        const std::string value = get(facts.ranks[rank]);
        auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == value; });
        if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
        group->second.push_back(static_cast<int>(rank));
    }
    return groups;
}

const char* severity_name(Severity severity) {
    switch (severity) {
        case Severity::kOk:
            return "ok";
        case Severity::kNote:
            return "note";
        case Severity::kWarning:
            return "warning";
        case Severity::kFault:
            return "fault";
    }
    return "?";
}

std::string ranks_text(const std::vector<int>& ranks) {
    std::string list;
    for (const char c : cpu_list_text(ranks)) {
        list += c;
        if (c == ',') list += ' ';
    }
    return (ranks.size() == 1 ? "rank " : "ranks ") + list;
}

std::string count_text(std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void to_json(nlohmann::json& json, const Finding& f) {
    json = {{"severity", severity_name(f.severity)},
            {"subject", f.subject},
            {"text", f.text},
            {"advice", f.advice},
            {"ranks", f.ranks}};
}

}  // namespace lockstep

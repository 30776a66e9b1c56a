// Facts of a job that is in order, for tests to spoil, and what the doctor finds in them.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "train/doctor.hpp"

namespace lockstep::test {

/// A job that is in order: 2 hosts of 8 cores, 2 ranks each, started by mpirun with 4 cores a rank.
inline ClusterFacts healthy(int ranks = 4) {
    ClusterFacts cluster;
    for (int r = 0; r < ranks; ++r) {
        RankFacts rank;
        rank.local_rank = r % 2;
        rank.program = {"0.1.0", "arithmetic 1", "GCC 12.2.0",     "Release",
                        "00ff",  {"libm.so.6"},  "Open MPI 4.1.4", "Open MPI 4.1.4"};
        rank.host = {r < 2 ? "a" : "b", "Linux 6.1", "Fast CPU", 8,    int64_t{64} << 30,
                     int64_t{32} << 30, "madvise",   0,          false};
        rank.cgroup.cpuset = {0, 1, 2, 3, 4, 5, 6, 7};
        rank.limits.open_files = 1024;
        rank.launch = {"mpirun", "", ranks};
        const int first = 4 * (r % 2);
        rank.device = {{first, first + 1, first + 2, first + 3}, 4, 4, "avx512", "", {"avx512", "avx2", "scalar"}};
        rank.environment = {{"LANG", "C.UTF-8"}};
        rank.config.json = config_to_json(Config{});
        cluster.ranks.push_back(rank);
    }
    cluster.network.links = {{2, "b", 20e-6, 1e9, 1e-4, 2e-5}};
    cluster.network.all_reduce = {{4, 30e-6}, {65536, 90e-6}};
    cluster.folder = {"/runs/x", "/runs", "", int64_t{1} << 40, {}};
    return cluster;
}

inline const Finding* find(const Findings& findings, const std::string& subject, Severity severity) {
    const auto at = std::find_if(findings.begin(), findings.end(),
                                 [&](const Finding& f) { return f.subject == subject && f.severity == severity; });
    return at == findings.end() ? nullptr : &*at;
}

/// The one finding worse than a note, or nothing.
inline std::vector<Finding> bad(const ClusterFacts& cluster) {
    std::vector<Finding> found;
    for (const Finding& f : examine(cluster)) {
        if (f.severity >= Severity::kWarning) found.push_back(f);
    }
    return found;
}

inline void check_only(const ClusterFacts& cluster, Severity severity, const std::string& subject,
                       const std::string& text, const std::vector<int>& ranks) {
    const std::vector<Finding> found = bad(cluster);
    std::string all;
    for (const Finding& f : found) all += f.subject + ": " + f.text + "\n";
    INFO(all);
    REQUIRE(found.size() == 1);
    CHECK(found[0].severity == severity);
    CHECK(found[0].subject == subject);
    CHECK_THAT(found[0].text, Catch::Contains(text));
    CHECK(!found[0].advice.empty());
    CHECK(found[0].ranks == ranks);
}

}  // namespace lockstep::test

// The report of `env`: as lines for people and as one JSON document for scripts.
#pragma once

#include <cstdint>
#include <string>

#include "core/bytes_text.hpp"
#include "train/doctor_findings.hpp"

namespace lockstep {

std::string report_text(const ClusterFacts& facts, const Findings& findings, bool color);
std::string report_json(const ClusterFacts& facts, const Findings& findings);

/// "1.2 s", "3.4 ms", "12 us".
std::string seconds_text(double seconds);

}  // namespace lockstep

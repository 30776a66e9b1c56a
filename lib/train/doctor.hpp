// `env`: looks at every rank, at what lies between them and at the folder of a run, and says what to change.
#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "train/doctor_findings.hpp"

namespace lockstep {

struct DoctorOptions {
    FactSources sources;
    std::string out = ".";  // where a run would be written
};

/// Everything there is to know, on rank 0 (the others get nothing). Takes about two seconds, however many ranks.
/// Collective.
ClusterFacts examine_job(Communicator& comm, const DoctorOptions& options);

}  // namespace lockstep

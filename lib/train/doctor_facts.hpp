// What `env` gathers on one rank, without a judgement: program, host, share, launcher, environment, config. Travels to
// rank 0 as JSON, and is the per-rank part of `env --json`.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "config/environment.hpp"
#include "train/doctor_gpus.hpp"
#include "train/doctor_machine.hpp"

namespace lockstep {

struct ProgramFacts {
    std::string version;
    std::string arithmetic;  // numeric fingerprint
    std::string compiler;
    std::string build_type;
    std::string binary;                  // 16 hex digits of the executable's sha256
    std::vector<std::string> libraries;  // shared ones as loaded, links followed: "libmpi.so.40.30.4"
    std::string mpi;
    std::string mpi_headers;
};

/// How this process was started, as its environment tells.
struct LaunchFacts {
    std::string launcher;  // alone | singleton | mpirun | srun pmix | srun pmi2 | other
    std::string job;       // Slurm's job id, or ""
    int started = 0;       // processes that the launcher says it started; 0: it does not say
};
LaunchFacts launch_of(const Environment& environment);

/// What this rank computes with.
struct DeviceFacts {
    std::vector<int> cpus;  // affinity mask
    int fair_threads = 1;   // threads with device.threads = 0
    int threads = 1;        // with the config in force
    std::string isa;        // chosen; "" where the CPU lacks what was asked for
    std::string isa_fault;
    std::vector<std::string> isas;  // that this CPU has, best first
};

/// A file of the config that this rank would read.
struct FileFacts {
    std::string key;  // "data.train"
    std::string path;
    int64_t bytes = -1;  // -1: cannot be read
    std::string reason;  // why not
};

/// The config as this rank reads it: of files, LOCKSTEP_ variables and --set, or of the last two alone.
struct ConfigFacts {
    std::string fault;  // of the config: lines
    std::string json;   // config_to_json
    Origins origins;
    std::vector<FileFacts> files;
};

struct RankFacts {
    int local_rank = 0;
    ProgramFacts program;
    HostFacts host;
    CgroupFacts cgroup;
    LimitFacts limits;
    LaunchFacts launch;
    DeviceFacts device;
    GpuReport gpu;
    Environment environment;  // what libraries and shells act on; no launcher's bookkeeping
    ConfigFacts config;
};

struct FactSources {
    std::vector<std::string> files;  // of the config; may be empty
    std::vector<std::string> sets;
};

/// Never throws for what it finds: that is what the facts tell. Collective.
RankFacts gather_facts(Communicator& comm, const FactSources& sources);

void to_json(nlohmann::json& json, const RankFacts& facts);
void from_json(const nlohmann::json& json, RankFacts& facts);

}  // namespace lockstep

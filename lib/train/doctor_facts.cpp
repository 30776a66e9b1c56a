#include "train/doctor_facts.hpp"

#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "backend/cpu/cpu_isa.hpp"
#include "comm/mpi_library.hpp"
#include "core/hash.hpp"
#include "core/version.hpp"
#include "train/device.hpp"

namespace lockstep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProgramFacts, version, arithmetic, compiler, build_type, binary, libraries, mpi,
                                   mpi_headers)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, name, kernel, cpu, cpus, memory_bytes, memory_free_bytes, huge_pages,
                                   gpus, infiniband)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CgroupFacts, cpus, cpuset, memory_bytes, memory_used_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LimitFacts, open_files, address_space_bytes, locked_bytes, file_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchFacts, launcher, job, started)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceFacts, cpus, fair_threads, threads, isa, isa_fault, isas)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileFacts, key, path, bytes, reason)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ConfigFacts, fault, json, origins, files)

void to_json(nlohmann::json& json, const RankFacts& f) {
    json = {{"local_rank", f.local_rank},   {"program", f.program}, {"host", f.host},     {"cgroup", f.cgroup},
            {"limits", f.limits},           {"launch", f.launch},   {"device", f.device}, {"gpu", f.gpu},
            {"environment", f.environment}, {"config", f.config}};
}
void from_json(const nlohmann::json& json, RankFacts& f) {
    json.at("local_rank").get_to(f.local_rank);
    json.at("program").get_to(f.program);
    json.at("host").get_to(f.host);
    json.at("cgroup").get_to(f.cgroup);
    json.at("limits").get_to(f.limits);
    json.at("launch").get_to(f.launch);
    json.at("device").get_to(f.device);
    json.at("gpu").get_to(f.gpu);
    json.at("environment").get_to(f.environment);
    json.at("config").get_to(f.config);
}

namespace {

namespace fs = std::filesystem;

/// What the launcher left; none of it is compared between ranks.
constexpr std::string_view kLauncherVariables[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_orte_hnp_uri", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_"};
/// What libraries, shells and Lockstep itself act on.
constexpr std::string_view kActedOn[] = {"LOCKSTEP_",
                                         "OMP_",
                                         "GOMP_",
                                         "KMP_",
                                         "MKL_",
                                         "LC_",
                                         "LANG",
                                         "TZ",
                                         "LD_",
                                         "GLIBC_TUNABLES",
                                         "MALLOC_",
                                         "UCX_",
                                         "OMPI_MCA_btl",
                                         "OMPI_MCA_pml",
                                         "OMPI_MCA_mtl",
                                         "OMPI_MCA_coll",
                                         "OMPI_MCA_mpi_",
                                         "OMPI_MCA_oob_",
                                         "OMPI_MCA_hwloc_base"};

/// The shared libraries of this process, links followed, so that the name holds the version.
std::vector<std::string> loaded_libraries() {
    std::set<std::string> names;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t path = line.find('/');
        if (path == std::string::npos || line.find(".so", path) == std::string::npos) continue;
        names.insert(fs::path(line.substr(path)).filename().string());
    }
    names.insert(fmt::format("glibc {}", gnu_get_libc_version()));
    return {names.begin(), names.end()};
}

ProgramFacts program_facts() {
    ProgramFacts facts;
    facts.version = version();
    facts.arithmetic = kNumericFingerprint;
#if defined(__clang__)
    facts.compiler = fmt::format("Clang {}", __clang_version__);
#else
    facts.compiler = fmt::format("GCC {}", __VERSION__);
#endif
    facts.build_type = LOCKSTEP_BUILD_TYPE;
    try {
        facts.binary = sha256_of_file("/proc/self/exe").substr(0, 16);
    } catch (const Error&) {  // no /proc: nothing to compare, nothing wrong
    }
    facts.libraries = loaded_libraries();
    const MpiLibrary mpi = mpi_library();
    facts.mpi = mpi.running;
    facts.mpi_headers = mpi.built_with;
    return facts;
}

FileFacts look_at(const std::string& key, const std::string& path) {
    FileFacts facts{key, path, -1, ""};
    std::error_code error;
    if (access(path.c_str(), R_OK) != 0) {
        facts.reason = std::strerror(errno);
        return facts;
    }
    const auto bytes = fs::is_directory(path, error) ? 0 : fs::file_size(path, error);
    if (error) {
        facts.reason = error.message();
    } else {
        facts.bytes = static_cast<int64_t>(bytes);
    }
    return facts;
}

std::vector<FileFacts> look_at_files(const Config& config) {
    std::vector<FileFacts> files;
    const auto add = [&](const char* key, const std::string& path) {
        if (!path.empty()) files.push_back(look_at(key, path));
    };
    for (const auto& [key, paths] :
         {std::pair("data.train", config.data.train), std::pair("data.test", config.data.test)}) {
        add(key, paths.images);
        add(key, paths.labels);
        for (const std::string& path : paths.paths) add(key, path);
    }
    add("model.weights", config.model.weights);
    return files;
}

/// The config in force. Without a file it is made complete, so that variables and --set are checked all the same.
Config read_config(const FactSources& sources, ConfigFacts& facts) {
    std::vector<std::string> sets = sources.sets;
    if (sources.files.empty()) sets.insert(sets.begin(), {"data.format=synthetic", "train.steps=1"});
    try {
        std::error_code ignored;
        const LoadedConfig loaded =
            load_config({sources.files, config_environment(), sets, fs::current_path(ignored).string()});
        facts.json = config_to_json(loaded.config);
        facts.origins = loaded.origins;
        if (!sources.files.empty()) facts.files = look_at_files(loaded.config);
        return loaded.config;
    } catch (const Error& error) {
        facts.fault = error.what();
        return {};
    }
}

DeviceFacts device_facts(Communicator& comm, const Config& config) {
    DeviceFacts facts;
    facts.cpus = affinity_cpus();
    facts.fair_threads = fair_threads(comm);
    facts.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : facts.fair_threads;
    const std::vector<Isa> available = available_isas();
    for (const Isa isa : available) facts.isas.emplace_back(isa_name(isa));
    try {
        facts.isa = isa_name(choose_isa(isa_of(config.device.isa), available));
    } catch (const Error& error) {
        facts.isa_fault = error.what();
    }
    return facts;
}

}  // namespace

LaunchFacts launch_of(const Environment& environment) {
    const auto text = [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::string() : found->second;
    };
    const auto number = [&](const char* name) { return std::atoi(text(name).c_str()); };
    LaunchFacts facts;
    facts.job = text("SLURM_JOB_ID");
    const bool speaks_mpi = environment.contains("OMPI_COMM_WORLD_SIZE") || environment.contains("PMIX_RANK") ||
                            environment.contains("PMI_RANK");
    const int tasks = number("SLURM_STEP_NUM_TASKS");
    if (!speaks_mpi) {
        facts.started = tasks;
        facts.launcher = tasks > 1 ? "singleton" : "alone";
    } else if (environment.contains("OMPI_MCA_orte_hnp_uri")) {
        facts.started = number("OMPI_COMM_WORLD_SIZE");
        facts.launcher = "mpirun";  // inside a Slurm job, too: its tasks are mpirun's own daemons then
    } else if (environment.contains("SLURM_STEP_ID")) {
        facts.started = tasks;
        facts.launcher = environment.contains("PMIX_RANK") ? "srun pmix" : "srun pmi2";
    } else {
        facts.started = std::max(number("PMI_SIZE"), number("OMPI_COMM_WORLD_SIZE"));
        facts.launcher = "other";
    }
    return facts;
}

RankFacts gather_facts(Communicator& comm, const FactSources& sources) {
    RankFacts facts;
    facts.local_rank = comm.local_rank();
    facts.program = program_facts();
    facts.host = read_host();
    facts.cgroup = read_cgroup();
    facts.limits = read_limits();
    facts.launch = launch_of(environment_with(kLauncherVariables));
    facts.environment = environment_with(kActedOn);
    const Config config = read_config(sources, facts.config);
    facts.device = device_facts(comm, config);
    facts.gpu = look_at_gpus(config);
    return facts;
}

}  // namespace lockstep

#include "explain/launch.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "explain/imported.hpp"

namespace lockstep {
namespace {

/// "a:2,b:2" -> 4: a host without a number has one.
int64_t slots_of(const FlagList::Flag& flag) {
    int64_t slots = 0;
    for (const std::string& host : parts_of(flag.value)) {
        const std::size_t colon = host.rfind(':');
        const std::vector<std::string> word = {"-x", colon == std::string::npos ? "1" : host.substr(colon + 1)};
        try {
            slots += FlagList(word).take_count({"x"}, 1, 1'000'000).value_or(1);
        } catch (const Error&) {
            fail(ErrorKind::kUsage, "{}: no list of HOST:SLOTS", flag.spelled);
        }
    }
    return slots;
}

/// "worker-0:0,1@worker-1:0" -> 3; 0 where a host has no list of GPUs.
int64_t gpus_of(const std::string& include) {
    int64_t gpus = 0;
    for (const std::string& host : parts_of(include, '@')) {
        const std::size_t colon = host.find(':');
        if (colon == std::string::npos) return 0;
        gpus += static_cast<int64_t>(parts_of(std::string_view(host).substr(colon + 1)).size());
    }
    return gpus;
}

class LaunchReader {
  public:
    explicit LaunchReader(Launch outer) : outer_(std::move(outer)) {}

    /// What this launcher makes of the one around it.
    Launch read(LauncherKind kind, const std::string& name, FlagList& flags) {
        if (kind == LauncherKind::kGcloud || kind == LauncherKind::kPython || kind == LauncherKind::kOther)
            return outer_;
        launch_.launcher = name;
        switch (kind) {
            case LauncherKind::kTorchrun:
                torchrun(flags);
                break;
            case LauncherKind::kMpirun:
                if (!counted_by(flags, {"np"}) && !per_node(flags)) of_hosts(flags, {"host"}, "mpirun -np P");
                break;
            case LauncherKind::kSrun:
                srun(flags);
                break;
            case LauncherKind::kAccelerate:
                if (!counted_by(flags, {"num_processes"})) launch_.missing = "accelerate launch --num_processes=P";
                break;
            case LauncherKind::kDeepspeed:
                deepspeed(flags);
                break;
            default:
                if (!counted_by(flags, {"np", "num_proc"})) of_hosts(flags, {"hosts"}, "horovodrun -np P");
        }
        return launch_;
    }

  private:
    bool counted_by(FlagList& flags, std::initializer_list<std::string_view> names) {
        const std::string name = flags.name_of(names);
        launch_.processes = flags.take_count(names, 1);
        if (!launch_.processes) return false;
        launch_.words = fmt::format("{} {}", name, *launch_.processes);
        launch_.nodes = launch_.processes;
        return true;
    }

    void of_hosts(FlagList& flags, std::initializer_list<std::string_view> names, const char* missing) {
        const FlagList::Flag* hosts = flags.take_valued(names);
        if (hosts == nullptr) {
            launch_.missing = missing;
            return;
        }
        launch_.processes = slots_of(*hosts);
        launch_.nodes = launch_.processes;
        launch_.words = hosts->spelled;
    }

    /// mpirun -N 4 -H a,b
    bool per_node(FlagList& flags) {
        const std::string name = flags.name_of({"per_node"});
        const auto each = flags.take_count({"per_node"}, 1);
        if (!each) return false;
        const FlagList::Flag* hosts = flags.take_valued({"host"});
        if (hosts == nullptr) {
            launch_.missing = fmt::format("mpirun -np P, as {} {} does not say on how many nodes", name, *each);
            return true;
        }
        const auto nodes = static_cast<int64_t>(parts_of(hosts->value).size());
        launch_.words = fmt::format("{} {} x {}", name, *each, hosts->spelled);
        launch_.processes = batch_product({*each, nodes}, launch_.words);
        launch_.nodes = nodes;
        return true;
    }

    void torchrun(FlagList& flags) {
        const std::string each_name = flags.name_of({"nproc_per_node", "nproc"});
        const std::string nodes_name = flags.name_of({"nnodes"});
        const int64_t each = flags.take_count({"nproc_per_node", "nproc"}, 1).value_or(1);
        // Each task of an outer launcher is a node's torchrun.
        const int64_t nodes = flags.take_count({"nnodes"}, 1).value_or(outer_.processes.value_or(1));
        const std::string of_each = each_name.empty() ? "one process" : fmt::format("{}={}", each_name, each);
        const std::string of_nodes =
            nodes_name.empty() ? counted(nodes, "node") : fmt::format("{}={}", nodes_name, nodes);
        launch_.words = fmt::format("{} x {}", of_each, of_nodes);
        launch_.processes = batch_product({each, nodes}, launch_.words);
        launch_.nodes = nodes;
    }

    void srun(FlagList& flags) {
        const auto nodes = flags.take_count({"nodes"}, 1);
        const auto each = flags.take_count({"ntasks_per_node"}, 1);
        if (const auto tasks = flags.take_count({"ntasks"}, 1)) {
            launch_.processes = *tasks;
            launch_.words = fmt::format("--ntasks={}", *tasks);
        } else if (nodes) {
            launch_.words = fmt::format("--nodes={} x --ntasks-per-node={}", *nodes, each.value_or(1));
            launch_.processes = batch_product({*nodes, each.value_or(1)}, launch_.words);
        } else {
            launch_.missing = "srun --ntasks=P, as a batch script's #SBATCH lines are not seen here";
        }
        launch_.nodes = launch_.processes;
    }

    void deepspeed(FlagList& flags) {
        const auto each = flags.take_count({"num_gpus"}, 1);
        const int64_t nodes = flags.take_count({"num_nodes"}, 1).value_or(outer_.processes.value_or(1));
        const FlagList::Flag* include = flags.take_valued({"include"});
        const int64_t included = include != nullptr ? gpus_of(include->value) : 0;
        if (included > 0) {
            launch_.processes = included;
            launch_.words = include->spelled;
        } else if (each) {
            launch_.words = fmt::format("--num_gpus={} x {}", *each, counted(nodes, "node"));
            launch_.processes = batch_product({*each, nodes}, launch_.words);
        } else {
            launch_.missing = "deepspeed --num_gpus=P, as without it all GPUs of its hosts count";
        }
        launch_.nodes = nodes;
    }

    Launch outer_, launch_;
};

/// Flags alone: those that only a launcher has are a launcher's.
Launch read_headless(FlagList& flags) {
    if (flags.has({"nproc_per_node", "nproc", "nnodes"})) {
        return LaunchReader({}).read(LauncherKind::kTorchrun, "torchrun", flags);
    }
    if (flags.has({"np", "num_proc", "n"})) {
        Launch launch;
        launch.launcher = "mpirun";
        const std::string name = flags.name_of({"np", "num_proc", "n"});
        launch.processes = flags.take_count({"np", "num_proc", "n"}, 1);
        launch.nodes = launch.processes;
        launch.words = fmt::format("{} {}", name, *launch.processes);
        return launch;
    }
    return {};
}

}  // namespace

Launch read_launch(CommandLine& line) {
    if (line.launchers.empty() && line.script.empty()) return read_headless(line.flags);
    Launch launch;
    for (Launcher& launcher : line.launchers)
        launch = LaunchReader(std::move(launch)).read(launcher.kind, launcher.name, launcher.flags);
    return launch;
}

}  // namespace lockstep

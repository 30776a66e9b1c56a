#include "explain/command_line.hpp"

#include <algorithm>
#include <cctype>

#include "config/value.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

using Words = std::span<const std::string>;

struct Known {
    LauncherKind kind;
    std::set<std::string_view> programs;
    std::set<std::string_view> modules;  // of python -m
    FlagSpelling spelling;               // lists: flags that take two words
    std::set<std::string_view> valued;   // flags that always take the word behind them; of others it is guessed
};

std::vector<Known> known_launchers() {
    return {
        {LauncherKind::kTorchrun,
         {"torchrun"},
         {"torch.distributed.run", "torch.distributed.launch"},
         {{}, {"m", "module", "no_python", "run_path", "standalone", "use_env"}, {}},
         {"nproc_per_node", "nproc", "nnodes", "node_rank", "master_addr", "master_port"}},
        {LauncherKind::kHorovodrun,
         {"horovodrun"},
         {"horovod.run", "horovod.runner.launch"},
         {{{"H", "hosts"}}, {"disable_cache", "gloo", "mpi", "verbose", "tcp", "check_build", "autotune"}, {}},
         {"np", "num_proc", "H", "hosts", "hostfile", "p", "ssh_port", "start_timeout"}},
        {LauncherKind::kMpirun,
         {"mpirun", "mpiexec", "mpiexec.hydra", "mpirun.mpich", "mpirun.openmpi", "orterun", "prun"},
         {},
         {{{"n", "np"},
           {"c", "np"},
           {"N", "per_node"},
           {"npernode", "per_node"},
           {"ppn", "per_node"},
           {"perhost", "per_node"},
           {"H", "host"},
           {"hosts", "host"}},
          {"allow_run_as_root", "oversubscribe", "tag_output", "report_bindings", "display_map", "v", "q", "verbose",
           "bind_to_core", "bind_to_socket", "bynode", "byslot", "nolocal", "use_hwthread_cpus", "l", "prepend_rank"},
          {"mca", "gmca", "genv", "env"}},
         {"np", "n", "c", "N", "npernode", "ppn", "perhost", "H", "host", "hosts", "hostfile", "x", "f"}},
        {LauncherKind::kSrun,
         {"srun"},
         {},
         {{{"n", "ntasks"}, {"N", "nodes"}},
          {"exclusive", "l", "label", "u", "unbuffered", "v", "verbose", "Q", "quiet", "overlap", "pty", "O",
           "overcommit", "s", "oversubscribe", "K", "kill_on_bad_exit"},
          {}},
         {"n",
          "ntasks",
          "N",
          "nodes",
          "ntasks_per_node",
          "c",
          "cpus_per_task",
          "p",
          "partition",
          "t",
          "time",
          "G",
          "gpus",
          "w",
          "nodelist",
          "J",
          "job_name",
          "A",
          "account",
          "o",
          "output",
          "e",
          "error",
          "D",
          "chdir"}},
        {LauncherKind::kAccelerate,
         {"accelerate"},
         {"accelerate.commands.launch"},
         {{},
          {"multi_gpu", "cpu", "use_deepspeed", "use_fsdp", "tpu", "same_network", "m", "module", "no_python", "debug",
           "q", "quiet", "use_megatron_lm"},
          {}},
         {"num_processes", "num_machines", "machine_rank", "mixed_precision", "config_file", "gpu_ids"}},
        {LauncherKind::kDeepspeed,
         {"deepspeed", "deepspeed.pt"},
         {"deepspeed.launcher.runner"},
         {{{"H", "hostfile"}, {"i", "include"}, {"e", "exclude"}},
          {"module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "bind_cores_to_rank"},
          {}},
         {"num_gpus", "num_nodes", "H", "hostfile", "i", "include", "e", "exclude", "master_addr", "master_port"}},
        {LauncherKind::kGcloud, {"gcloud"}, {}, {{}, {"distributed", "stream_logs"}, {}}, {}},
        {LauncherKind::kPython,
         {"python", "python2", "python3", "ipython"},
         {},
         {{}, {"u", "O", "OO", "B", "E", "s", "S", "I", "q", "v", "b", "d", "m", "c"}, {}},
         {"W", "X"}},
    };
}

std::string_view base_name(std::string_view word) {
    return word.substr(word.find_last_of('/') + 1);
}

bool is_dashes(std::string_view word) {
    return word.find_first_not_of('-') == std::string_view::npos;
}

bool is_script(std::string_view word) {
    return word.ends_with(".py");
}

/// OMP_NUM_THREADS=1, and what shells and notebooks have in front of a command.
bool is_prologue(std::string_view word) {
    const std::size_t equals = word.find('=');
    const auto named = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
    if (equals != std::string_view::npos && equals > 0) return std::all_of(word.begin(), word.begin() + equals, named);
    return word == "$" || word == "!" || word == "sudo" || word == "nohup" || word == "time" || word == "env" ||
           word == "exec" || word == "\\";
}

class Splitter {
  public:
    Splitter(Words words, const FlagSpelling& spelling) : words_(words), spelling_(spelling) {}

    CommandLine split() && {
        while (at_ < words_.size() && !is_flag(words_[at_]) && (is_dashes(words_[at_]) || is_prologue(words_[at_])))
            ++at_;
        if (at_ == words_.size()) return std::move(line_);
        if (is_flag(words_[at_])) {
            // The end of a launcher's line, or the script's flags alone.
            if (!program_follows(at_, true)) {
                read_script("", at_);
            } else {
                read_launcher(headless(), "");
            }
        }
        while (at_ < words_.size() && !done_) {
            const Known* known = next_ != nullptr ? next_ : launcher_of(words_[at_]);
            if (known != nullptr) {
                next_ = nullptr;
                ++at_;
                read_launcher(known, std::string(base_name(words_[at_ - 1])));
            } else if (!is_script(words_[at_]) && program_follows(at_ + 1, false)) {
                read_other();  // "singularity exec image.sif python train.py"
            } else {
                read_script(words_[at_], at_ + 1);
            }
        }
        return std::move(line_);
    }

  private:
    const Known* launcher_of(std::string_view word) const {
        std::string_view name = base_name(word);
        if (name.starts_with("python3.") && name.find_first_not_of("0123456789.", 6) == std::string_view::npos)
            name = "python3";
        for (const Known& known : known_) {
            if (known.programs.contains(name)) return &known;
        }
        return nullptr;
    }

    const Known* launcher_of_module(std::string_view module) const {
        for (const Known& known : known_) {
            if (known.modules.contains(module)) return &known;
        }
        return nullptr;
    }

    /// Whether a launcher or a script comes before the end; `behind_flags`: though it may be a flag's value.
    bool program_follows(std::size_t from, bool behind_flags) const {
        for (std::size_t i = from; i < words_.size(); ++i) {
            const bool value = i > from && is_flag(words_[i - 1]) && !behind_flags;
            if (!value && !is_flag(words_[i]) && (is_script(words_[i]) || launcher_of(words_[i]) != nullptr))
                return true;
        }
        return false;
    }

    /// The launcher whose flags stand in front without its name.
    const Known* headless() const {
        for (const std::string& word : words_.subspan(at_)) {
            if (word.find("nproc") != std::string::npos || word.find("nnodes") != std::string::npos)
                return launcher_of("torchrun");
        }
        return launcher_of("mpirun");
    }

    void read_script(const std::string& name, std::size_t from) {
        line_.script = name;
        line_.flags = FlagList(words_.subspan(from), spelling_);
        done_ = true;
    }

    void read_other() {
        const std::size_t begin = at_;
        while (!is_script(words_[at_]) && (at_ == begin || launcher_of(words_[at_]) == nullptr)) ++at_;
        line_.launchers.push_back(
            {LauncherKind::kOther, words_[begin], FlagList(words_.subspan(begin + 1, at_ - begin - 1))});
    }

    /// Its words up to those of the program that it starts.
    void read_launcher(const Known* known, const std::string& name) {
        const std::size_t begin = at_;
        if (known->kind == LauncherKind::kGcloud) {  // "--" ends what is for it
            while (at_ < words_.size() && !is_dashes(words_[at_])) ++at_;
            add_launcher(*known, name, begin, at_);
            if (at_ < words_.size()) read_script("", at_ + 1);
            return;
        }
        for (; at_ < words_.size(); ++at_) {
            const std::string& word = words_[at_];
            const bool launch = known->kind == LauncherKind::kAccelerate && word == "launch";
            if (is_dashes(word) || launch || is_prologue(word)) continue;
            if (!is_flag(word)) break;
            pass_flag(*known);
            if (known->kind != LauncherKind::kPython || word != "-m" || at_ + 1 >= words_.size()) continue;
            add_launcher(*known, name, begin, ++at_);
            next_ = launcher_of_module(words_[at_]);
            if (next_ == nullptr) read_script(words_[at_], at_ + 1);
            return;
        }
        add_launcher(*known, name, begin, at_);
    }

    void add_launcher(const Known& known, const std::string& name, std::size_t begin, std::size_t end) {
        line_.launchers.push_back({known.kind, name, FlagList(words_.subspan(begin, end - begin), known.spelling)});
    }

    /// From a flag of a launcher to the last word that is its value.
    void pass_flag(const Known& known) {
        const std::string& word = words_[at_];
        if (word.find('=') != std::string::npos) return;
        std::string name = word.substr(word.find_first_not_of('-'));
        std::replace(name.begin(), name.end(), '-', '_');
        const auto pass = [&](std::size_t count) { at_ = std::min(at_ + count, words_.size() - 1); };
        if (known.spelling.lists.contains(name)) return pass(2);
        if (known.valued.contains(name)) return pass(1);
        const bool attached = !word.starts_with("--") && known.spelling.short_names.contains(name.substr(0, 1)) &&
                              name.size() > 1 && name.find_first_not_of("0123456789", 1) == std::string::npos;
        if (attached || known.spelling.switches.contains(name) || at_ + 1 == words_.size()) return;
        const std::string& behind = words_[at_ + 1];
        if (!is_flag(behind) && !is_dashes(behind) && !is_script(behind) && launcher_of(behind) == nullptr) pass(1);
    }

    std::vector<Known> known_ = known_launchers();
    Words words_;
    const FlagSpelling& spelling_;
    std::size_t at_ = 0;
    bool done_ = false;
    const Known* next_ = nullptr;  // the launcher that python's -m names
    CommandLine line_;
};

}  // namespace

std::vector<FlagList::Flag> CommandLine::all_flags() const {
    std::vector<FlagList::Flag> all;
    for (const Launcher& launcher : launchers)
        all.insert(all.end(), launcher.flags.all().begin(), launcher.flags.all().end());
    all.insert(all.end(), flags.all().begin(), flags.all().end());
    return all;
}

FlagList* CommandLine::flags_of(LauncherKind kind) {
    for (Launcher& launcher : launchers) {
        if (launcher.kind == kind) return &launcher.flags;
    }
    return nullptr;
}

CommandLine split_command_line(std::span<const std::string> words, const FlagSpelling& spelling) {
    for (const std::string& word : words) {
        if (!is_utf8(word)) fail(ErrorKind::kUsage, "{}: no UTF-8 text, which no config can hold", printable(word));
    }
    return Splitter(words, spelling).split();
}

}  // namespace lockstep

// The seam between main and the subcommands. A subcommand is one file with one add_… function, declared here and called
// in main: it declares its options and, when it was chosen, leaves what to do in Invocation::action. main runs that
// after the whole command line is known to be good, and turns what it throws into a message and an exit code.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

/// Options of every subcommand; they may stand before or after its name.
struct GlobalOptions {
    bool quiet = false;
    bool verbose = false;
    std::string color = "auto";     // auto | always | never
    std::string progress = "auto";  // auto | bar | plain | none

    /// Whether to colour what goes to this descriptor: --color, else a terminal without NO_COLOR.
    bool use_color(int descriptor) const;
};

struct Invocation {
    std::vector<std::string> arguments;  // argv, for run.json
    GlobalOptions global;
    std::function<int()> action;  // of the chosen subcommand; its result is the exit code
    std::string fault;            // of the command line; there is no action then
    std::vector<std::pair<std::string, std::string>> options = {};  // that all ranks must be given alike, by name
};

/// -c/--config FILE and --set KEY=VALUE, both repeatable, of a subcommand that takes a config.
class ConfigOptions {
  public:
    /// Keeps pointers into itself: it must outlive the parsing.
    void add_to(CLI::App& command, bool file_required = false);
    /// Layers files, LOCKSTEP_ variables and --set; prints the warnings. Throws ConfigError.
    LoadedConfig load() const;
    const std::vector<std::string>& files() const { return files_; }

  private:
    std::vector<std::string> files_;
    std::vector<std::string> sets_;
};

/// Results go to stdout, whole: a full disk or a closed pipe is an error (kRuntime), not a shorter result.
void print_result(std::string_view text);
/// A result for people: what in it would steer a terminal (names may hold anything) is shown as \x1b and the like.
void print_text(std::string_view text);

/// Errors on stderr. Each line is for itself and may land among the lines of other ranks: each says who speaks.
void report(const std::string& message, const GlobalOptions& global);
/// Lines that begin with a file and a position, which editors and people click on: nothing may stand before it.
void report_positioned(const std::string& lines);

void add_bench(CLI::App& app, Invocation& invocation);
void add_config(CLI::App& app, Invocation& invocation);
void add_diff(CLI::App& app, Invocation& invocation);
void add_env(CLI::App& app, Invocation& invocation);
void add_eval(CLI::App& app, Invocation& invocation);
void add_explain(CLI::App& app, Invocation& invocation);
void add_export(CLI::App& app, Invocation& invocation);
void add_inspect(CLI::App& app, Invocation& invocation);
void add_plan(CLI::App& app, Invocation& invocation);
void add_predict(CLI::App& app, Invocation& invocation);
void add_train(CLI::App& app, Invocation& invocation);
void add_verify(CLI::App& app, Invocation& invocation);

}  // namespace lockstep

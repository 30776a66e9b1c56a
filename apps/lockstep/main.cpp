// The executable: reads the command line, runs the chosen subcommand, and is the one place where an error becomes a
// message and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "commands.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "launch.hpp"
#include "same_command.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

constexpr int kUsageError = 2;

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 run-time failure, 2 usage or config, 3 data, 4 a difference was found,\n"
    "5 non-finite loss or gradient, 75 checkpointed and stopped on request.";

void add_global_options(CLI::App& app, GlobalOptions& global) {
    CLI::Option* quiet = app.add_flag("-q,--quiet", global.quiet, "Warnings and errors only");
    app.add_flag("-v,--verbose", global.verbose, "More lines on stderr")->excludes(quiet);
    app.add_option("--color", global.color, "auto: on a terminal, unless NO_COLOR is set")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("auto|always|never");
    app.add_option("--progress", global.progress, "auto: a bar on a terminal, else plain lines")
        ->check(CLI::IsMember({"auto", "bar", "plain", "none"}))
        ->type_name("auto|bar|plain|none");
}

bool looks_like_setting(std::string_view word) {
    const std::size_t equals = word.find('=');
    return equals != std::string_view::npos && equals > 0 &&
           word.substr(0, equals).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string_view::npos;
}

/// What words were meant for that no option takes, where they look like a setting or are a file; else "".
std::string meant_fault(const CLI::App& chosen, const std::vector<std::string>& words) {
    std::string settings, files;
    for (const std::string& word : words) {
        if (word.starts_with('-')) return "";
        std::error_code ignored;
        if (looks_like_setting(word)) settings.append(" --set ").append(word);
        if (std::filesystem::is_regular_file(word, ignored)) files.append(" -c ").append(word);
    }
    if (!settings.empty() && chosen.get_option_no_throw("--set") != nullptr) {
        return fmt::format("{}: write{}; --set takes one key each", fmt::join(words, " "), settings + files);
    }
    if (files.empty() || chosen.get_option_no_throw("--config") == nullptr) return "";
    return fmt::format("{}: write{}", fmt::join(words, " "), files);
}

/// What is wrong with a command line: for a command that does not exist, its name.
std::string usage_fault(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App* chosen = &app;
    while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
    const std::vector<std::string> unknown = app.remaining(true);
    if (chosen->get_require_subcommand_min() == 0 || unknown.empty() || unknown.front().starts_with('-')) {
        const std::string meant = unknown.empty() ? "" : meant_fault(*chosen, unknown);
        return meant.empty() ? error.what() : meant;
    }
    return fmt::format("{}: no such command", unknown.front());
}

/// An option that takes one value each time it is given says so: no "..." behind it.
class HelpFormatter : public CLI::Formatter {
  public:
    std::string make_option_opts(const CLI::Option* option) const override {
        const std::string text = CLI::Formatter::make_option_opts(option);
        const std::size_t dots = option->get_allow_extra_args() ? std::string::npos : text.find(" ...");
        return dots == std::string::npos ? text : text.substr(0, dots) + text.substr(dots + 4);
    }
};

/// A wrong command line: the ranks of a launcher all see it, and one of them tells it.
int refuse_usage(const std::string& message, Invocation& invocation) {
    if (!under_launcher()) {
        report(message, invocation.global);
        return kUsageError;
    }
    invocation.fault = message;
    return run_as_rank(invocation, true, [](Communicator&) { return kUsageError; });
}

int run(const Invocation& invocation) {
    try {
        return invocation.action();
    } catch (const ConfigError& error) {
        report_positioned(error.what());
        return exit_code(error.kind());
    } catch (const Error& error) {
        report(error.what(), invocation.global);
        return exit_code(error.kind());
    } catch (const std::exception& error) {
        report(message_of(error), invocation.global);
        return exit_code(ErrorKind::kRuntime);
    }
}

int parse_and_run(int argc, char** argv) {
    Invocation invocation;
    invocation.arguments.assign(argv, argv + argc);

    CLI::App app("All-reduce synchronous trainer: N ranks give the bits that one rank gives", "lockstep");
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", std::string("lockstep ") + version() + "\n" + kNumericFingerprint);
    app.footer(kFooter);
    app.fallthrough();
    app.require_subcommand(1);
    add_global_options(app, invocation.global);
    add_plan(app, invocation);
    add_train(app, invocation);
    add_eval(app, invocation);
    add_predict(app, invocation);
    add_inspect(app, invocation);
    add_export(app, invocation);
    add_verify(app, invocation);
    add_diff(app, invocation);
    add_explain(app, invocation);
    add_config(app, invocation);
    add_env(app, invocation);
    add_bench(app, invocation);

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& wanted) {  // --help, --version
        return app.exit(wanted);
    } catch (const CLI::ParseError& error) {
        return refuse_usage(usage_fault(app, error) + "; see --help", invocation);
    }
    set_log(invocation.global.quiet     ? LogLevel::kQuiet
            : invocation.global.verbose ? LogLevel::kVerbose
                                        : LogLevel::kNormal,
            true);
    invocation.options = options_to_compare(app);
    return run(invocation);
}

/// Holds the numbers 0, 1 and 2 where the caller closed them: the next file opened would get one of them, and what is
/// meant for stdout or stderr would be written into it. Using them stays an error: they are open the wrong way.
void occupy_standard_descriptors() {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
        if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
    std::signal(SIGXFSZ, SIG_IGN);  // a file beyond its size limit is a failed write like any other
    lockstep::occupy_standard_descriptors();
    return lockstep::parse_and_run(argc, argv);
}

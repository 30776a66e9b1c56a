// What several subcommands share: the global options, the config options, and the way to stdout.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "commands.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/shown_text.hpp"
#include "launch.hpp"

namespace lockstep {

bool GlobalOptions::use_color(int descriptor) const {
    if (color != "auto") return color == "always";
    const bool declined = !environment_variable("NO_COLOR").value_or("").empty();  // no-color.org: set and not empty
    if (declined || environment_variable("TERM") == "dumb" || isatty(descriptor) != 1) return false;
    // mpirun gives every rank a terminal for stdout, one without columns where its own stdout is none.
    winsize size{};
    return !under_launcher() || (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0);
}

void ConfigOptions::add_to(CLI::App& command, bool file_required) {
    // One value for each -c: the next word may be the subcommand's own.
    command.add_option("-c,--config", files_, "Config file (TOML); again for more, of which later ones win")
        ->type_name("FILE")
        ->allow_extra_args(false)
        ->required(file_required);
    command
        .add_option("--set", sets_,
                    "Set one key, for example batch.size=64; again for more; wins over files and LOCKSTEP_ variables")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
}

LoadedConfig ConfigOptions::load() const {
    LoadedConfig loaded = load_config({files_, config_environment(), sets_, std::filesystem::current_path().string()});
    for (const std::string& warning : loaded.warnings) warn_line(warning);
    return loaded;
}

void print_result(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0)
        fail(ErrorKind::kRuntime, "stdout cannot be written: {}", std::strerror(errno));
}

void print_text(std::string_view text) {
    print_result(shown_text(text));
}

void report(const std::string& said, const GlobalOptions& global) {
    const std::string message = shown_text(said);
    const std::string prefix = global.use_color(STDERR_FILENO) ? "\033[1;31mlockstep:\033[0m " : "lockstep: ";
    std::string text;
    for (size_t start = 0; start <= message.size();) {
        const size_t end = std::min(message.find('\n', start), message.size());
        text += prefix + message.substr(start, end - start) + "\n";
        start = end + 1;
    }
    std::fputs(text.c_str(), stderr);
    log_to_file("error: " + message);
}

void report_positioned(const std::string& lines) {
    std::fputs((shown_text(lines) + "\n").c_str(), stderr);
}

}  // namespace lockstep

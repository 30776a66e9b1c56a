#include "same_command.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "train/agreement.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kOwn[] = {"--config",   "--set",   "--log-dir", "--json",           "--color",
                                     "--progress", "--quiet", "--verbose", "--allow-singleton"};

std::string value_of(const CLI::Option& option) {
    if (option.count() > 0) return fmt::format("{}", fmt::join(option.results(), " "));
    return option.get_default_str().empty() ? "not given" : option.get_default_str();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> options_to_compare(const CLI::App& app) {
    std::vector<std::pair<std::string, std::string>> options;
    std::string command;
    const CLI::App* chosen = &app;
    while (!chosen->get_subcommands().empty()) {
        chosen = chosen->get_subcommands().front();
        command += (command.empty() ? "" : " ") + chosen->get_name();
    }
    options.emplace_back("the command", command);
    for (const CLI::Option* option : chosen->get_options()) {
        const std::string name = option->get_name();  // "--out", or of a positional one "path"
        if (name == "--help" || std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn)) continue;
        options.emplace_back(name, value_of(*option));
    }
    return options;
}

void check_same_command(Communicator& comm, const Invocation& invocation) {
    if (comm.size() == 1) {
        if (!invocation.fault.empty()) throw SharedError(ErrorKind::kUsage, invocation.fault);
        return;
    }
    agree(comm, [&] {
        if (!invocation.fault.empty()) throw Error(ErrorKind::kUsage, invocation.fault);
    });
    using Options = std::vector<std::pair<std::string, std::string>>;
    const nlohmann::json own = {{"host", host_name()}, {"options", invocation.options}};
    const std::vector<std::string> texts =
        comm.all_gather(own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    const auto first = nlohmann::json::parse(texts.front()).at("options").get<Options>();
    for (std::size_t rank = 1; rank < texts.size(); ++rank) {
        const auto other = nlohmann::json::parse(texts[rank]);
        const auto options = other.at("options").get<Options>();
        for (std::size_t i = 0; i < std::min(first.size(), options.size()); ++i) {
            if (options[i] == first[i]) continue;
            throw SharedError(ErrorKind::kUsage, fmt::format("unequal start: {} is {} on rank {} on {}, {} on rank 0",
                                                             first[i].first, options[i].second, rank,
                                                             other.at("host").get<std::string>(), first[i].second));
        }
    }
}

}  // namespace lockstep

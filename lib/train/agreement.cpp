#include "train/agreement.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/config.hpp"
#include "io/shown_path.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// A failure as text for the other ranks.
std::string failure_text(ErrorKind kind, const char* message, bool positioned) {
    return json{
        {"kind", static_cast<int>(kind)}, {"message", message}, {"positioned", positioned}, {"host", host_name()}}
        .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The outcome of a phase on this rank: "" or the failure.
std::string outcome_of(FunctionRef<void()> phase) {
    try {
        phase();
        return "";
    } catch (const ConfigError& e) {
        return failure_text(e.kind(), e.what(), true);
    } catch (const Error& e) {
        return failure_text(e.kind(), e.what(), false);
    } catch (const std::exception& e) {
        return failure_text(ErrorKind::kRuntime, message_of(e).c_str(), false);
    }
}

}  // namespace

std::string message_of(const std::exception& error) {
    const auto* of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
    if (of_files == nullptr) return std::string("unexpected: ") + error.what();
    return fmt::format("{}: {}", shown_path(of_files->path1().native()), of_files->code().message());
}

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "?";
    return name.data();
}

void agree(Communicator& comm, FunctionRef<void()> phase) {
    const std::vector<std::string> outcomes = comm.all_gather(outcome_of(phase));
    const auto first = std::find_if(outcomes.begin(), outcomes.end(), [](const std::string& o) { return !o.empty(); });
    if (first == outcomes.end()) return;
    const json failure = json::parse(*first);
    std::string message = failure.at("message");
    // All ranks with one message: it is the command's or the config's fault, not a rank's.
    const bool same = std::all_of(outcomes.begin(), outcomes.end(), [&](const std::string& o) {
        return !o.empty() && json::parse(o).at("message") == message;
    });
    if (!same) {
        message =
            fmt::format("rank {} on {}: {}", first - outcomes.begin(), failure.at("host").get<std::string>(), message);
    }
    throw SharedError(static_cast<ErrorKind>(failure.at("kind").get<int>()), message,
                      same && failure.at("positioned").get<bool>());
}

void agree_on_first(Communicator& comm, FunctionRef<void()> phase) {
    const std::string outcome = comm.broadcast(0, comm.rank() == 0 ? outcome_of(phase) : "");
    if (outcome.empty()) return;
    const json failure = json::parse(outcome);
    throw SharedError(static_cast<ErrorKind>(failure.at("kind").get<int>()), failure.at("message").get<std::string>(),
                      failure.at("positioned").get<bool>());
}

}  // namespace lockstep

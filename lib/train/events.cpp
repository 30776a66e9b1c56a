#include "train/events.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "train/agreement.hpp"
#include "train/run_directory.hpp"

namespace lockstep {

EventsLog::EventsLog(const std::string& path) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    file_ = std::make_unique<LineFile>(path, error ? 0 : static_cast<int64_t>(size));
}

void EventsLog::append(const std::string& event, const nlohmann::ordered_json& fields) {
    if (!file_) return;
    nlohmann::ordered_json line = {{"event", event}, {"time", utc_now()}, {"host", host_name()}};
    line.update(fields);
    file_->append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace lockstep

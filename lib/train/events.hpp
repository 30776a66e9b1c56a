// events.jsonl: what happened to a run, with times and hosts. Unlike metrics.jsonl it may differ between equal runs.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "io/files.hpp"

namespace lockstep {

class EventsLog {
  public:
    EventsLog() = default;  // nowhere
    explicit EventsLog(const std::string& path);
    /// One line: {"event":…, "time":…, "host":…, fields…}.
    void append(const std::string& event, const nlohmann::ordered_json& fields);

  private:
    std::unique_ptr<LineFile> file_;
};

}  // namespace lockstep

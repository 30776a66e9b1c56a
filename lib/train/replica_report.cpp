#include "train/replica_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostLines = 8;  // of a message for people; the event has all

std::string value_text(uint32_t bits) {
    return fmt::format("{} (0x{:08x})", std::bit_cast<float>(bits), bits);
}

nlohmann::ordered_json entries_of(const std::vector<ReplicaDifference>& differences) {
    auto entries = nlohmann::ordered_json::array();
    for (const ReplicaDifference& d : differences) {
        entries.push_back({{"rank", d.rank},
                           {"host", d.host},
                           {"device", d.device},
                           {"element", d.element},
                           {"bits", fmt::format("0x{:08x}", d.bits)},
                           {"compared_with", d.other},
                           {"its_bits", fmt::format("0x{:08x}", d.other_bits)},
                           {"differing", d.differing},
                           {"elements", d.elements}});
    }
    return entries;
}

}  // namespace

std::string ReplicaDifference::text() const {
    const std::string who = fmt::format("rank {} on {} ({})", rank, host, device);
    if (differing == 0) {
        const std::string tensor = element.substr(0, element.find('['));
        return fmt::format("{} hashed other values of {} than rank {}, but both hold the same now", who, tensor, other);
    }
    return fmt::format("{} has {} = {}, rank {} has {}; {} of {} elements differ{}", who, element, value_text(bits),
                       other, value_text(other_bits), differing, elements, differing == 1 ? "s" : "");
}

nlohmann::ordered_json check_event(const std::vector<ReplicaDifference>& differences, int64_t step, bool state,
                                   uint64_t hash, const std::string& last_passed) {
    nlohmann::ordered_json event = {
        {"step", step}, {"passed", differences.empty()}, {"of", state ? "weights and optimizer state" : "weights"}};
    if (differences.empty()) {
        event["hash"] = hex16(hash);
    } else {
        event["ranks"] = entries_of(differences);
        event["resume_from"] = last_passed;
    }
    return event;
}

std::string check_failure(const std::vector<ReplicaDifference>& differences, int64_t step,
                          const std::string& last_passed) {
    const std::string start = fmt::format("step {}: replica check: ", step);
    std::string text;
    for (std::size_t i = 0; i < std::min(differences.size(), kMostLines); ++i) {
        text += start + differences[i].text() + "\n";
    }
    if (differences.size() > kMostLines) {
        text += fmt::format("{}and {} ranks more; events.jsonl lists them\n", start, differences.size() - kMostLines);
    }
    return text + start +
           "nothing was saved; a flipped bit enters all ranks' weights with the next step, so those that "
           "agree may be wrong, too: " +
           (last_passed.empty() ? "no checkpoint has passed, start again"
                                : fmt::format("resume from {}, the last checkpoint that passed", last_passed));
}

}  // namespace lockstep

// See access_log.hpp.
#include "test/emulation/access_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "test/emulation/runtime.hpp"

namespace lockstep::emulation {

void AccessLog::add(Entry entry, const VectorClock& stream, const VectorClock& host) {
    for (const Entry& e : entries_) {
        const bool overlap = e.begin < entry.end && entry.begin < e.end;
        if (!overlap || !(e.write || entry.write) || e.stream == entry.stream ||
            e.time <= std::max(stream.at(e.stream), host.at(e.stream))) {
            continue;
        }
        fail(
            fmt::format("race: {} on stream {} {} memory that {} on stream {} {}, and no event or synchronisation "
                        "orders the two",
                        entry.what, entry.stream, entry.write ? "writes" : "reads", e.what, e.stream,
                        e.write ? "writes" : "reads"));
    }
    // What the host has waited for comes before all that follows; what the same stream covers with a stronger access
    // would be reported by that one.
    std::erase_if(entries_, [&](const Entry& e) {
        return e.time <= host.at(e.stream) ||
               (e.stream == entry.stream && entry.begin <= e.begin && e.end <= entry.end && (entry.write || !e.write));
    });
    entries_.push_back(std::move(entry));
}

}  // namespace lockstep::emulation

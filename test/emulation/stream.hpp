// Streams and events as the emulation keeps them. The handles of the C interface are their addresses; the machine
// (machine.hpp) owns them and guards every field with its mutex.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/emulation/vector_clock.hpp"

namespace lockstep::emulation {

struct Capture;
struct Stream;

struct Task {
    std::string what;
    std::function<bool()> poll;  // true: finished
    // A wait for an event is no work: it ends when the other stream has done as much.
    std::shared_ptr<Stream> waits_for;
    std::uint64_t until = 0;
};

struct Stream : std::enable_shared_from_this<Stream> {
    int device = 0;
    std::size_t slot = 0;  // its place in vector clocks
    std::deque<Task> queue;
    std::uint64_t pushed = 0, done = 0;
    std::uint64_t wanted = 0;               // lazy order: run until `done` is this
    std::vector<std::uint64_t> host_waits;  // values of `done` that host threads sleep for
    VectorClock clock;                      // what the work pushed last comes after, itself included
    bool destroyed = false;
    std::shared_ptr<Capture> capture;  // that it is part of
};

struct Event {
    using Time = std::chrono::steady_clock::time_point;
    int device = 0;
    bool timed = false;
    // The last record; none before the first.
    std::shared_ptr<Stream> stream;
    std::uint64_t at = 0;
    VectorClock clock;
    std::shared_ptr<Time> completed;
    std::shared_ptr<Capture> capture;  // that the last record is part of, and its number there
    std::size_t record = 0;
};

}  // namespace lockstep::emulation

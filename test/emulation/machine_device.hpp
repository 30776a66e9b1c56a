// One device of the machine, and graphs: private to machine.cpp, executor.cpp, waiting.cpp and capture.cpp.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "test/emulation/access_log.hpp"
#include "test/emulation/block_runner.hpp"
#include "test/emulation/machine.hpp"
#include "test/emulation/settings.hpp"

namespace lockstep::emulation {

struct Machine::Device {
    using Clock = std::chrono::steady_clock;

    int index = 0;
    std::vector<std::shared_ptr<Stream>> streams;
    AccessLog log;
    std::optional<Fault> sticky;
    std::map<const void*, std::size_t> shared_opt_in;
    std::uint64_t launches = 0;
    BlockRunner runner;  // used by the executor only

    std::condition_variable wake;   // the executor: there is work, or somebody waits
    std::condition_variable moved;  // waiting host threads: a stream went on
    bool busy = false;              // the executor runs work, without the mutex
    Clock::time_point last_call = Clock::now();
    std::mt19937_64 chance{seeded(0)};  // which stream goes on; not the order of threads, which must not depend on time
};

struct Machine::Graph {
    std::shared_ptr<const Capture> contents;
};

struct Machine::GraphExec {
    std::shared_ptr<const Capture> contents;
    std::vector<cudaStream_t> streams;  // [0] is the launching one's place
    std::vector<cudaEvent_t> events;    // of each record
};

}  // namespace lockstep::emulation

// What is put on streams while they are captured: nothing runs, everything is noted in order, to be put on real streams
// as often as the graph is launched. The happens-before check works then, on what really precedes and follows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "test/emulation/vector_clock.hpp"

namespace lockstep::emulation {

struct Stream;

/// A capture under way, and afterwards what the graph consists of. Its streams are numbered, the origin is 0.
struct Capture {
    struct Touch {
        std::size_t stream;
        const void* pointer;
        std::size_t bytes;
        bool write;
        std::string what;
    };
    struct Work {
        std::size_t stream;
        std::string what;
        std::function<bool()> poll;
    };
    struct Record {
        std::size_t stream;
        std::size_t number;  // of the record: events may be recorded again
    };
    struct Wait {
        std::size_t stream;
        std::size_t record;
    };

    int device = 0;
    std::thread::id thread;  // that began it: it may not wait or allocate until the end
    std::vector<std::shared_ptr<Stream>> streams;
    std::vector<VectorClock> clocks;  // of each stream: what its last work comes after
    std::vector<std::variant<Touch, Work, Record, Wait>> operations;
    std::size_t records = 0;

    /// The stream's number; it becomes one of the capture's where it is none yet.
    std::size_t number_of(const std::shared_ptr<Stream>& stream);
};

/// Fails while the calling thread has a capture under way: `what` waits, asks or allocates.
void refuse_in_capture(const char* what);

}  // namespace lockstep::emulation

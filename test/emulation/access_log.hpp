// The happens-before check: which work on which stream touched which memory, as far as later work could still collide
// with it. It looks at what is *stated* to be touched when work is put on a stream, not at how the emulation happens to
// run it, so that a missing event is found in every run and not by luck.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "test/emulation/vector_clock.hpp"

namespace lockstep::emulation {

class AccessLog {
  public:
    struct Entry {
        std::uintptr_t begin, end;
        bool write;
        std::size_t stream;
        std::uint64_t time;  // the work's number on its stream
        std::string what;
    };

    /// Notes an access by work that comes after `stream` and `host`; fails if another stream touches the same memory,
    /// one of the two writes, and nothing orders them.
    void add(Entry entry, const VectorClock& stream, const VectorClock& host);
    void clear() { entries_.clear(); }

  private:
    std::vector<Entry> entries_;
};

}  // namespace lockstep::emulation

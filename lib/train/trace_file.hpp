// trace.jsonl as a whole: where it is cut when a run goes on, and its lines by step when `diff` reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/trace_line.hpp"

namespace lockstep {

/// The part of a trace that stays: whole lines in rising order of steps up to the one that the run goes on from.
struct TraceCut {
    int64_t bytes = 0;
    int64_t step = -1;  // of the last line that stays; -1: none
};
TraceCut cut_trace(const std::string& path, int64_t step);  // a file that is not there has no lines

/// The lines of a trace, found but not yet read.
class TraceFile {
  public:
    /// Throws kData, naming file and line, where lines are damaged or out of order. A last line that was cut off while
    /// it was written is left out.
    static TraceFile read(const std::string& path);

    /// What all its steps start from.
    const TraceStart& start() const { return start_; }
    int64_t first_step() const { return start_.step; }
    int64_t last_step() const { return steps_.empty() ? start_.step : steps_.back(); }
    /// Of every update it tells of, ascending. A run that was traced only now and then has gaps.
    const std::vector<int64_t>& steps() const { return steps_; }
    /// The line of an update as it stands, empty where there is none.
    std::string_view line(int64_t step) const;
    TraceStep step(int64_t step) const;

  private:
    struct Line {
        std::size_t begin, end;
        int64_t number;  // in the file, from 1
    };
    std::optional<std::size_t> find(int64_t step) const;
    std::string where(const Line& line) const;

    std::string path_;
    std::string text_;
    TraceStart start_;
    std::vector<int64_t> steps_;
    std::vector<Line> lines_;  // of steps_
};

}  // namespace lockstep

// One line of trace.jsonl: what a step was made of, as hashes. Everything up to "own" is a function of config and data;
// "own" holds what each rank summed by itself, which parts of the canonical tree those are follows from the number of
// ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/canonical_tree.hpp"

namespace lockstep {

/// A rank whose total gradient or weights are not those of rank 0: in a run that keeps its promise there is none.
struct TraceApart {
    int rank = 0;
    std::vector<std::string> gradient;  // tensors
    std::vector<std::string> weights;
    bool operator==(const TraceApart&) const = default;
};

/// A maximal node of the canonical tree, as its rank had it before anything was sent.
struct TraceNode {
    ShardRange shards;
    int rank = 0;
    float loss = 0;                  // sum over its samples
    std::vector<uint64_t> gradient;  // of each tensor
};

struct TraceTensor {
    std::string name;
    std::vector<int64_t> shape;
    bool operator==(const TraceTensor&) const = default;
};

/// The first line: what the steps after it start from.
struct TraceStart {
    int64_t step = 0;  // updates done: 0, or those of the checkpoint that the run was started from
    int shards = 1;
    std::string data;                  // fingerprint of the training data
    std::vector<TraceTensor> tensors;  // as they lie (ParameterTable::placed), as everywhere
    int buffers = 0;                   // the last of them: they have no gradient
    std::vector<uint64_t> weights;
    std::vector<TraceApart> apart;
};

struct TraceStep {
    int64_t step = 0;   // of the update, from 1
    int64_t epoch = 0;  // from 0
    int64_t samples = 0;
    uint64_t indices = 0;  // which samples, in which order
    uint64_t data = 0;     // their pixels and labels
    float loss = 0;        // mean
    float lr = 0;
    std::vector<uint64_t> gradient;  // total of each tensor, before it is divided
    std::vector<uint64_t> weights;   // after the update
    std::vector<TraceApart> apart;
    std::vector<TraceNode> own;  // in shard order
};

std::string trace_line(const TraceStart& start);
std::string trace_line(const TraceStep& step);

/// The part of a line that equal runs share at any number of ranks.
std::string_view common_part(std::string_view line);
/// The step of a line, -1 where it does not begin as one.
int64_t step_of_line(std::string_view line);
/// Whether it is a start.
bool is_start_line(std::string_view line);

/// Throw kData, beginning with `where`, for what is no such line.
TraceStart parse_trace_start(std::string_view line, const std::string& where);
TraceStep parse_trace_step(std::string_view line, const std::string& where);

}  // namespace lockstep

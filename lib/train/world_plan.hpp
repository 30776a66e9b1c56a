// How `verify` splits a job into smaller worlds: which world runs when, on which ranks, and with which settings that
// must not matter. Pure functions; the runner and the tests read the same data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

/// Reads "1,2,4". Throws kUsage, beginning with `where`, unless it is a list of numbers from 1 to 4096.
std::vector<int> parse_worlds(const std::string& text, const std::string& where);

/// 1 … ranks; a world of one rank, which has nobody to compare itself with, twice.
std::vector<int> worlds_to_verify(int ranks);

/// What a machine, or the poorest of a job's machines, can be asked for.
struct WorldMeans {
    int ranks = 1;    // of the job
    int threads = 1;  // a rank's fair share
    std::vector<std::string>
        isas;  // that every rank has, best first; scalar code left out where it is not the only one
    int64_t gradient_bytes = 0;
};

/// One world: where it runs, and with what.
struct WorldCast {
    int world = 1;            // its ranks
    bool in_process = false;  // larger than the job: its ranks are threads of one rank of the job
    int round = 0;            // worlds of one round run side by side
    int first = 0;            // the first rank of the job that it takes
    int64_t threads = 1;      // of each of its ranks
    int64_t streams = 0;      // of each rank that computes on a GPU
    bool graphs = false;      // of the same
    int64_t bucket_kib = 4096, small_kib = 32;
    std::string isa;

    int width() const { return in_process ? 1 : world; }  // ranks of the job that it takes
    bool has(int job_rank) const { return job_rank >= first && job_rank < first + width(); }
};

/// The worlds in the order of the list. The first one is what the others are compared with: it runs in the first round
/// and has the config's own settings. Each of the others has another number of threads and streams, other buckets and
/// the next instruction set (with `native` the config's buckets, which can change bits there).
std::vector<WorldCast> cast_worlds(std::span<const int> worlds, const Config& config, const WorldMeans& means);

}  // namespace lockstep

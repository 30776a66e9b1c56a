// A point of the promise: everything that may decide who computes a number and when, and everything that decides what
// the number is. Two points with the same job must give the same bytes, whatever their cast is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "config/config.hpp"
#include "train/trainer.hpp"
#include "train/worlds.hpp"

namespace lockstep::test {

/// What is computed.
struct Job {
    std::string model = "mlp";  // mlp | lenet
    double dropout = 0;
    std::string optimizer = "momentum";  // rmsprop_momentum: rmsprop with it
    std::string op = "average";
    std::string layout = "batch";
    std::string last = "keep";
    std::string schedule = "constant";
    std::string shuffle = "full";
    double clip_norm = 0, weight_decay = 0, l2 = 0, warmup = 0, validation = 0;
    int64_t samples = 1003, batch = 96, shards = 8, steps = 14;
    int64_t classes = 10;
    uint64_t seed = 1;
    bool full_size = false;  // 28x28 and the real layer sizes instead of 12x12 and small ones
    std::string describe() const;
};

/// Who computes it.
struct Cast {
    int world = 1;
    std::vector<int64_t> threads{1};        // of rank r: threads[r % size]
    std::vector<std::string> isas{"auto"};  // likewise
    int64_t bucket_kib = 4096;
    int64_t small_kib = 32;
    std::string describe() const;
};

LoadedConfig config_of(const Job& job);

/// Trains in memory with ranks as threads. `change` may spoil a rank's settings (twins that must fail).
struct Spoil {
    RankChange change;
};
Outcome run(const Job& job, const Cast& cast, const Spoil& spoil = {});

/// "scalar", "avx2", … that this machine can run.
std::vector<std::string> isas_here();

}  // namespace lockstep::test

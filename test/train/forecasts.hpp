// Forecasts for tests: of a config, and a config in which nothing divides anything.
#pragma once

#include <vector>

#include "train/forecast.hpp"
#include "train/point.hpp"

namespace lockstep::test {

inline Forecast forecast_of(const Config& config, const std::vector<int>& worlds,
                            const std::vector<int64_t>& lr_at = {}) {
    return make_forecast(config, data_facts(config), {worlds, 1 << 20, lr_at});
}

/// Nothing divides anything: 9 steps an epoch of 203 samples, the last of 11.
inline Config odd_config(int64_t shards, const std::string& layout) {
    Job job;
    job.samples = 203;
    job.batch = 24;
    job.shards = shards;
    job.layout = layout;
    job.steps = 19;
    Config config = config_of(job).config;
    config.data.test_samples = 0;
    config.model.hidden = {9};
    config.reduce.bucket_kib = 2;
    config.reduce.small_kib = 1;
    config.device.threads = 1;
    return config;
}

}  // namespace lockstep::test

// Samples per second of a reader, decoded and resized, through the loader with 1, 2, 4 … threads: what a step's need is
// held against. Usage: reader_speed FORMAT PATH [HEIGHT WIDTH CHANNELS [SECONDS]]
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "config/config.hpp"
#include "core/thread_pool.hpp"
#include "data/loader.hpp"

using namespace lockstep;

namespace {

double samples_per_second(const Dataset& data, int threads, double seconds) {
    const int64_t batch = std::min<int64_t>(64, data.size());
    const ShardPlan plan(data.size(), batch, 1, Layout::kBatch, LastBatch::kDrop);
    LoaderOptions options;
    options.local = {0, 1};
    options.last_update = INT32_MAX;
    options.threads = threads;
    Loader loader(data, plan, options);
    loader.next();
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    int64_t samples = 0;
    double passed = 0;
    while (passed < seconds) {
        samples += loader.next().rows;
        passed = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return static_cast<double>(samples) / passed;
}

}  // namespace

int main(int count, char** words) {
    if (count < 3) {
        std::fputs("usage: reader_speed FORMAT PATH [HEIGHT WIDTH CHANNELS [SECONDS]]\n", stderr);
        return 2;
    }
    try {
        Config config;
        config.data.format = words[1];
        config.data.train.paths = {words[2]};
        for (int i = 3; i < std::min(count, 6); ++i) config.data.shape.push_back(std::atoll(words[i]));
        const auto data = open_data(config).train;
        for (int threads = 1; threads <= available_cpus(); threads *= 2) {
            fmt::print("{} {}x{}x{}, {} threads: {:.0f} samples/s\n", config.data.format, data->shape().height,
                       data->shape().width, data->shape().channels, threads,
                       samples_per_second(*data, threads, count > 6 ? std::atof(words[6]) : 2.0));
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}

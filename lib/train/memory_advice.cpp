#include "train/memory_advice.hpp"

#include <algorithm>
#include <optional>

#include "backend/out_of_memory.hpp"
#include "train/doctor_print.hpp"
#include "train/forecast.hpp"

namespace lockstep {
namespace {

/// What the forecast does not know takes a part: the libraries, packed weights, and what other processes hold.
constexpr double kUsable = 0.8;

/// Of cuBLAS, where it is used: the largest that it is given on any GPU.
constexpr std::int64_t kBlasWorkspace = std::int64_t{32} << 20;

Forecast forecast_of(Config config, const DataFacts& facts, int world, std::int64_t micro) {
    config.batch.micro = micro;
    ForecastOptions options;
    options.worlds = {world};
    options.any_passes = true;
    return make_forecast(config, facts, options);
}

/// What a rank at most holds on its device: there, too, the next samples arrive while the last ones are computed.
std::int64_t device_bytes_of(const Config& config, const DataFacts& facts, int world, std::int64_t micro) {
    const std::int64_t input = 2 * micro * facts.shape.elements() * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t libraries = config.device.arithmetic == "vendor" ? kBlasWorkspace : 0;
    std::int64_t most = 0;
    const Forecast forecast = forecast_of(config, facts, world, micro);
    for (const RankForecast& rank : forecast.worlds.front().ranks) {
        const MemoryForecast& m = rank.memory;
        most = std::max(most, m.weights + m.gradients + m.optimizer + m.exchange + m.activations + input + libraries);
    }
    return most;
}

}  // namespace

std::string memory_advice(const Config& config, const DataFacts& facts, int world, std::int64_t device_bytes) {
    const auto limit = static_cast<std::int64_t>(kUsable * static_cast<double>(device_bytes));
    // A rank's own part of the batch: a micro that holds all of it would change nothing.
    const Forecast forecast = forecast_of(config, facts, world, config.batch.micro);
    const std::int64_t own = forecast.worlds.front().most_samples;
    if (forecast.norm_global) {  // in passes it would be refused
        return fmt::format(
            "with batch_norm.scope = \"global\" a rank's {} samples are in memory at once, and take about {}: use more "
            "ranks, a GPU with more memory, or batch_norm.scope = \"shard\" with batch.micro (which is another run)",
            own, bytes_text(device_bytes_of(config, facts, world, own)));
    }
    const std::int64_t now = config.batch.micro > 0 ? std::min(config.batch.micro, own) : own;
    const std::int64_t shard =
        (config.batch.size + config.batch.shards - 1) / std::max<std::int64_t>(config.batch.shards, 1);
    std::int64_t least = 0;
    for (std::int64_t micro = now / 2; micro >= shard; micro /= 2) {
        least = device_bytes_of(config, facts, world, micro);
        if (least <= limit) {
            return fmt::format("batch.micro = {} would fit, with about {} on each GPU (no bit depends on it)", micro,
                               bytes_text(least));
        }
    }
    least = device_bytes_of(config, facts, world, shard);
    if (now > shard && least <= limit) {
        return fmt::format("batch.micro = {} would fit, with about {} on each GPU (no bit depends on it)", shard,
                           bytes_text(least));
    }
    return fmt::format(
        "one shard of {} samples alone takes about {}: use a GPU with more memory, or more batch.shards "
        "(which is another run)",
        shard, bytes_text(least));
}

void with_memory_advice(const Config& config, int world, FunctionRef<void()> allocate) {
    std::optional<OutOfMemory> failure;
    try {
        return allocate();
    } catch (const OutOfMemory& e) {
        failure = e;
    }
    std::string advice;
    try {
        advice = memory_advice(config, data_facts(config), world, failure->device_bytes());
    } catch (const Error&) {  // the first error is the one to report
        throw *failure;
    }
    throw OutOfMemory(fmt::format("{}; {}", failure->what(), advice), failure->device_bytes());
}

}  // namespace lockstep

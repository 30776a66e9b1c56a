#include "train/forecast_time.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "train/agreement.hpp"
#include "train/device.hpp"
#include "train/step_engine.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

/// Says that it is rank r of W, and has nobody to talk to.
class PretendedRank final : public Communicator {
  public:
    PretendedRank(int rank, int size) : rank_(rank), size_(size) {}
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    int local_rank() const override { return 0; }
    int local_size() const override { return 1; }
    Request& send(int, int, int, std::span<const std::byte>) override { alone(); }
    Request& receive(int, int, int, std::span<std::byte>) override { alone(); }
    void barrier() override { alone(); }
    void broadcast(int, std::vector<std::byte>&) override { alone(); }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte>) override { alone(); }
    void all_reduce_native(std::span<float>) override { alone(); }
    void abort(int) override { alone(); }

  private:
    [[noreturn]] static void alone() { fail(ErrorKind::kRuntime, "a step that is timed has no other ranks"); }
    int rank_;
    int size_;
};

/// Sends nothing: the rank's own sums stand in for the total.
class SilentReducer final : public Reducer {
  public:
    void begin(std::span<const int64_t>, std::span<float* const>) override {}
    void ready(int64_t) override {}
    void poll() override {}
    void finish() override {}
    int64_t bytes_sent() const override { return 0; }
    int64_t messages_sent() const override { return 0; }
    double seconds_waiting() const override { return 0; }
};

/// The median of the steps after the first, which plans and touches memory.
double median_step(Communicator& comm, Backend& backend, const Config& config, const RunPlan& plan,
                   const Dataset& data) {
    constexpr int kLeast = 3, kMost = 200;
    constexpr std::chrono::duration<double> kEnough(0.5);
    TrainOptions options;
    options.make_reducer = [](Communicator&, int, ReduceLayout, Adder) { return std::make_unique<SilentReducer>(); };
    StepEngine engine(comm, backend, config, plan, data, options);
    engine.restore({});
    engine.step();
    std::vector<double> seconds;
    const Clock::time_point begin = Clock::now();
    for (int64_t u = 1; u < plan.total_steps && static_cast<int>(seconds.size()) < kMost; ++u) {
        if (static_cast<int>(seconds.size()) >= kLeast && Clock::now() - begin > kEnough) break;
        const Clock::time_point start = Clock::now();
        engine.step();
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
}

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name") && line.find(": ") != std::string::npos)
            return line.substr(line.find(": ") + 2);
    }
    return "a CPU of unknown name";
}

}  // namespace

void time_steps(const Config& config, const Dataset& data, Forecast& forecast) {
    // Four steps need not be all of an epoch, nor a run: one that is shorter goes on for long enough to be timed.
    RunPlan plan = forecast.plan;
    plan.total_steps = std::max<int64_t>(plan.total_steps, 8);
    const auto here = make_single_communicator();
    const DeviceChoice device = choose_device(*here, config);
    std::map<std::pair<int, int64_t>, double> known;  // ranks with as many shards and samples take as long
    for (WorldForecast& world : forecast.worlds) {
        const RankForecast& busiest =
            *std::max_element(world.ranks.begin(), world.ranks.end(),
                              [](const RankForecast& a, const RankForecast& b) { return a.samples < b.samples; });
        const auto key = std::pair(busiest.shards.size(), busiest.samples);
        if (!known.contains(key)) {
            PretendedRank comm(busiest.rank, world.world);
            known[key] = median_step(comm, *device.backend, config, plan, data);
        }
        world.step_seconds = known[key];
    }
    forecast.timed_on = fmt::format("{} ({}, {})", host_name(), cpu_name(), device.backend->name());
}

}  // namespace lockstep

#include "train/bench_step.hpp"

#include <algorithm>
#include <chrono>

#include "train/agreement.hpp"
#include "train/memory_advice.hpp"
#include "train/step_engine.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmSteps = 4;  // the first, and those whose samples were read ahead
constexpr int kLeastSteps = 3;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
}

/// Takes the time of each stage. Where the device works on its own, a stage ends when its work does.
class StageClock final : public StepWatcher {
  public:
    struct Step {
        StepStages stages;
        int64_t rows = 0;
        int64_t samples = 0;  // of all ranks
    };

    explicit StageClock(Backend& backend) : backend_(backend) {}
    const std::vector<Step>& steps() const { return steps_; }

    void step_begins() override {
        steps_.emplace_back();
        last_ = Clock::now();
    }
    void batch_read(const Batch& batch) override {
        steps_.back().rows = batch.rows;
        steps_.back().samples = batch.global_size;
        end(&StepStages::input);
    }
    void forward_done() override { end(&StepStages::forward); }
    void partials_final(int64_t first, int64_t /*end*/, std::span<float* const> partial) override {
        if (first == 0 && !partial.empty()) end(&StepStages::backward);
    }
    void reduced(const Batch& /*batch*/, const float* /*total*/) override { end(&StepStages::reduce); }
    void updated(const StepOutcome& /*outcome*/, float* /*weights*/) override { end(&StepStages::update); }

  private:
    void end(double StepStages::*stage) {
        backend_.wait(backend_.main());
        const Clock::time_point now = Clock::now();
        steps_.back().stages.*stage = seconds_between(last_, now);
        last_ = now;
    }

    Backend& backend_;
    std::vector<Step> steps_;
    Clock::time_point last_;
};

/// Steps until rank 0 has enough of them; how many of the first are not to be counted, as rank 0 sees it.
std::size_t train_for(Communicator& comm, StepEngine& engine, const StageClock& clock, double seconds, bool& enough) {
    const Clock::time_point begin = Clock::now();
    Clock::time_point counted_from = begin;
    std::size_t warm = 0;
    for (bool agreed = false; !agreed;) {
        agreed = engine.step().stop_agreed;
        const Clock::time_point now = Clock::now();
        const std::size_t done = clock.steps().size();
        if (warm == 0 && (done == kWarmSteps || seconds_between(begin, now) > seconds)) {
            warm = done;
            counted_from = now;
        }
        // All ranks agree on a stop in the step that follows the request, which is one step more: hence done + 1.
        enough = warm > 0 && done + 1 >= warm + kLeastSteps && seconds_between(counted_from, now) >= seconds;
    }
    return static_cast<std::size_t>(std::stoll(comm.broadcast(0, std::to_string(warm))));
}

/// Of the counted steps, in the mean.
RankStages mean_of(std::span<const StageClock::Step> steps) {
    RankStages mean;
    for (const StageClock::Step& step : steps) {
        mean.samples += step.rows;
        mean.stages.input += step.stages.input;
        mean.stages.forward += step.stages.forward;
        mean.stages.backward += step.stages.backward;
        mean.stages.reduce += step.stages.reduce;
        mean.stages.update += step.stages.update;
    }
    const auto count = static_cast<double>(steps.size());
    mean.samples = static_cast<int64_t>(static_cast<double>(mean.samples) / count + 0.5);
    for (double* sum :
         {&mean.stages.input, &mean.stages.forward, &mean.stages.backward, &mean.stages.reduce, &mean.stages.update})
        *sum /= count;
    return mean;
}

std::vector<RankStages> gather_ranks(Communicator& comm, const RankStages& own, int threads) {
    const StepStages& s = own.stages;
    const std::vector<std::string> hosts = comm.all_gather(host_name());
    const auto numbers = gather_numbers(comm, {static_cast<double>(threads), static_cast<double>(own.samples), s.input,
                                               s.forward, s.backward, s.reduce, s.update});
    std::vector<RankStages> ranks;
    for (std::size_t r = 0; r < numbers.size(); ++r) {
        const std::vector<double>& n = numbers[r];
        ranks.push_back({hosts[r], static_cast<int>(n[0]), static_cast<int64_t>(n[1]), {n[2], n[3], n[4], n[5], n[6]}});
    }
    return ranks;
}

}  // namespace

StepBench bench_step(Communicator& comm, BenchJob& job, double seconds) {
    bool enough = false;
    TrainOptions options;
    options.stop_requested = [&] { return comm.rank() == 0 && enough; };
    const InitialWeights initial = read_initial_weights(comm, job.config());
    StartingPoint start;
    start.initial = initial;
    Backend& backend = *job.device.backend;
    StageClock clock(backend);
    std::optional<StepEngine> engine;
    const ExchangeEndsFirst ends_first(job.device);
    std::size_t warm = 0;
    agree(comm, [&] {
        with_memory_advice(job.config(), comm.size(), [&] {
            engine.emplace(comm, backend, job.config(), *job.plan, *job.data.train, options, job.device.exchange.get(),
                           job.device.graphs.get());
            engine->watch(clock);
            engine->restore(start);
        });
    });
    announcing_failure(comm, [&] {
        with_memory_advice(job.config(), comm.size(), [&] { warm = train_for(comm, *engine, clock, seconds, enough); });
    });

    const std::span<const StageClock::Step> counted = std::span(clock.steps()).subspan(warm);
    StepBench bench;
    bench.device = backend.name();
    bench.steps = static_cast<int64_t>(counted.size());
    std::vector<double> totals;
    double time = 0;
    int64_t samples = 0;
    for (const StageClock::Step& step : counted) {
        totals.push_back(step.stages.total());
        time += totals.back();
        samples += step.samples;
    }
    const std::vector<double> firsts = gather_numbers(comm, totals).front();
    bench.seconds = spread_of(firsts);
    bench.samples_per_s = gather_numbers(comm, {static_cast<double>(samples) / time}).front().front();
    bench.ranks = gather_ranks(comm, mean_of(counted), job.device.threads);
    return bench;
}

}  // namespace lockstep

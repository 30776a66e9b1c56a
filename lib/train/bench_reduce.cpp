#include "train/bench_reduce.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "train/agreement.hpp"
#include "train/device.hpp"
#include "train/engine_reducer.hpp"
#include "train/forecast_step.hpp"
#include "train/settings.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarm = 3;  // reductions that are not counted
constexpr int64_t kLeast = 5, kMost = 10'000;

/// The gradient sums of a rank, and their reduction. The sums are zeros: an addition takes as long whatever it adds.
class Reduction {
  public:
    Reduction(Communicator& comm, const Config& config, const RunPlan& plan, int64_t elements, DeviceChoice& device)
        : comm_(comm),
          backend_(*device.backend),
          sizes_(plan.shards.shard_sizes(0)),
          reducer_(make_engine_reducer(device.exchange ? *device.exchange : comm, config, elements, backend_)) {
        const int shards = plan.shards.shards();
        const ShardRange local = shards_of_rank(shards, comm.rank(), comm.size());
        const std::vector<float> zeros(static_cast<std::size_t>(kLead + elements));
        for (int i = 0; i < gradient_sums(plan, local); ++i) {
            buffers_.push_back(backend_.allocate(zeros.size() * sizeof(float)));
            // Written, so that each has memory of its own and not the system's one page of zeros.
            backend_.upload(backend_.main(), zeros.data(), buffers_.back()->floats(), zeros.size() * sizeof(float));
            sums_.push_back(buffers_.back()->floats());
        }
        backend_.synchronize();
        sums_.resize(std::max<std::size_t>(1, maximal_nodes(shards, local, sizes_).size()));
    }

    /// All ranks begin together; seconds until this one has the total.
    double operator()() {
        comm_.begin_work();
        comm_.barrier();
        const Clock::time_point begin = Clock::now();
        backend_.order(backend_.main(), backend_.communication());
        reducer_->begin(sizes_, sums_);
        reducer_->ready(0);
        reducer_->finish();
        backend_.order(backend_.communication(), backend_.main());
        backend_.wait(backend_.main());
        return std::chrono::duration<double>(Clock::now() - begin).count();
    }
    const Reducer& reducer() const { return *reducer_; }

  private:
    Communicator& comm_;
    Backend& backend_;
    std::vector<int64_t> sizes_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::vector<float*> sums_;
    std::unique_ptr<Reducer> reducer_;
};

/// Of each repetition, the slowest rank's seconds.
std::vector<double> repeat(Communicator& comm, Reduction& reduce, double seconds, int64_t& repetitions) {
    double last = 0;
    for (int i = 0; i < kWarm; ++i) last = reduce();
    const auto wanted = static_cast<int64_t>(std::min(seconds / std::max(last, 1e-7), 1e9));
    repetitions = std::stoll(comm.broadcast(0, std::to_string(std::clamp(wanted, kLeast, kMost))));
    std::vector<double> own;
    for (int64_t i = 0; i < repetitions; ++i) own.push_back(reduce());
    std::vector<double> slowest(own.size(), 0.0);
    for (const std::vector<double>& rank : gather_numbers(comm, own)) {
        for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rank[i]);
    }
    return slowest;
}

ReduceRate measure(Communicator& comm, const Config& config, const RunPlan& plan, int64_t elements,
                   DeviceChoice& device, double seconds) {
    std::unique_ptr<Reduction> reduce;
    const ExchangeEndsFirst ends_first(device);
    agree(comm, [&] { reduce = std::make_unique<Reduction>(comm, config, plan, elements, device); });
    ReduceRate rate;
    rate.algorithm = config.reduce.algorithm;
    announcing_failure(comm, [&] { rate.seconds = spread_of(repeat(comm, *reduce, seconds, rate.repetitions)); });
    const auto each = [&](int64_t total) { return static_cast<double>(total / (rate.repetitions + kWarm)); };
    const Reducer& reducer = reduce->reducer();
    for (const std::vector<double>& rank :
         gather_numbers(comm, {each(reducer.bytes_sent()), each(reducer.messages_sent())})) {
        rate.bytes_sent = std::max(rate.bytes_sent, static_cast<int64_t>(rank[0]));
        rate.messages = std::max(rate.messages, static_cast<int64_t>(rank[1]));
    }
    return rate;
}

}  // namespace

ReduceBench bench_reduce(Communicator& comm, const Config& config, const DataFacts& facts, double seconds) {
    comm.set_timeout(config.device.timeout_s);
    DeviceChoice device = choose_device(comm, config);
    ReduceBench bench;
    bench.world = comm.size();
    bench.device = device.backend->name();
    std::optional<RunPlan> plan;
    agree(comm, [&] {
        plan = make_run_plan(config, facts.samples);
        const Network network(model_spec(config, facts.shape, facts.classes, facts.columns), *device.backend,
                              config.batch.micro);
        bench.elements = network.parameters().flat_elements();
    });
    Config other = config;
    other.reduce.algorithm = config.reduce.algorithm == "native" ? "canonical" : "native";
    bench.rates.push_back(measure(comm, config, *plan, bench.elements, device, seconds));
    bench.rates.push_back(measure(comm, other, *plan, bench.elements, device, seconds));
    return bench;
}

}  // namespace lockstep

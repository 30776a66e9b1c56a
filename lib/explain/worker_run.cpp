#include "explain/worker_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/cpu/cpu_backend.hpp"
#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "explain/worker_batches.hpp"
#include "train/device.hpp"
#include "train/evaluator.hpp"
#include "train/initial_weights.hpp"
#include "train/settings.hpp"

namespace lockstep {
namespace {

constexpr int kMostRunWorkers = 64;  // each has readers of its own
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int threads_of(const Config& config) {
    return config.device.threads > 0 ? static_cast<int>(config.device.threads) : available_cpus();
}

/// The shards of a worker's batch: its part of the job's, so that Lockstep's rules have Lockstep's sums.
int shards_of_worker(const WorkerRules& rules, const Config& config) {
    const auto shards = static_cast<int>(config.batch.shards);
    return rules.batch == config.batch.size ? shards : std::max(1, shards / rules.workers);
}

/// What a network is given at once is the whole of a batch, or of a worker's: so far its scope "global" goes.
Config config_of(const WorkerRules& rules, const Config& config) {
    Config own = config;
    if (rules.own_statistics) own.batch_norm.scope = "global";
    if (own.batch_norm.scope == "global") own.batch.micro = 0;
    if (rules.clips_locally) own.optimizer.clip_norm = 0;
    return own;
}

/// A gradient sum with its lead, and the samples behind it.
struct Sum {
    std::unique_ptr<Buffer> buffer;
    int64_t samples = 0;
    float loss() { return buffer->floats()[kLeadLoss]; }
    float* gradient() { return buffer->floats() + kLead; }
};

class WorkerTraining {
  public:
    WorkerTraining(const WorkerRules& rules, const Config& config, const DataSplits& data)
        : rules_(rules),
          config_(config_of(rules, config)),
          data_(data),
          plan_(make_run_plan(config_, data.train->size())),
          clip_norm_(config.optimizer.clip_norm),
          comm_(make_single_communicator()),
          backend_(make_cpu_backend({isa_of(config_.device.isa), threads_of(config_)})),
          network_(model_spec(config_, data.train->shape(), data.train->classes(), data.train->columns()), *backend_,
                   config_.batch.micro),
          elements_(network_.parameters().flat_elements()),
          schedule_(schedule_spec(config_, plan_)),
          update_(optimizer_spec(config_), update_tensors(network_.parameters()), elements_, *backend_),
          rows_(*backend_, rules.batch * (rules.separate() ? 1 : rules.workers), data.train->shape().elements()),
          weights_(floats(network_.parameters().stored_elements())) {
        ThreadPool pool(threads_of(config_));
        const auto flat = static_cast<std::size_t>(network_.parameters().stored_elements());
        network_.parameters().initialise(static_cast<uint64_t>(config_.seed), {weights_->floats(), flat}, pool);
        const InitialWeights initial = read_initial_weights(*comm_, config_);
        if (!initial.file.empty()) load_initial_weights(initial, network_.parameters(), weights_->floats());
        for (int w = 0; w < (rules.separate() ? rules.workers : 1); ++w)
            sums_.push_back({floats(kLead + elements_), 0});
        for (int w = 0; rules.stale && w < rules.workers; ++w) {
            snapshots_.push_back(floats(network_.parameters().stored_elements()));
            std::copy_n(weights_->floats(), flat, snapshots_.back()->floats());
        }
    }

    RunOutcome run() {
        for (int64_t epoch = 0; epoch < plan_.epochs && !outcome_.diverged; ++epoch) {
            train_epoch(epoch);
            if (!outcome_.diverged) evaluate_after(epoch + 1);
        }
        outcome_.weights.assign(weights_->floats(), weights_->floats() + network_.parameters().stored_elements());
        return std::move(outcome_);
    }

  private:
    using Workers = std::vector<std::unique_ptr<WorkerBatches>>;

    std::unique_ptr<Buffer> floats(int64_t count) {
        return backend_->allocate(static_cast<std::size_t>(count) * sizeof(float));
    }

    void train_epoch(int64_t epoch) {
        const LoaderOptions options = training_loader_options(config_, plan_, {}, 1);
        const EpochOrders orders{options.seed, options.shuffle, options.block, data_.train->size()};
        Workers workers;
        for (int w = 0; w < rules_.workers; ++w) {
            workers.push_back(
                std::make_unique<WorkerBatches>(*data_.train, read_by_worker(rules_, orders, plan_.shards, w, epoch),
                                                rules_.batch, shards_of_worker(rules_, config_), epoch, options));
        }
        while (!outcome_.diverged && round(workers, epoch)) ++rounds_;
    }

    /// A batch of every worker that has one left; false when none has.
    bool round(const Workers& workers, int64_t epoch) {
        if (rules_.applying == Applying::kAsynchronously) return round_of_any_order(workers, epoch);
        if (!rules_.separate()) return joint_round(workers, epoch);
        std::vector<Sum*> sums;
        for (std::size_t w = 0; w < workers.size(); ++w) {
            if (!workers[w]->next()) continue;
            compute({workers[w].get()}, static_cast<int>(w), epoch, weights_->floats(), sums_[w]);
            if (sums.empty())
                network_.update_running(weights_->floats());  // of the first worker alone, as TensorFlow's
            if (rules_.clips_locally) clip(sums_[w]);
            sums.push_back(&sums_[w]);
        }
        if (sums.empty()) return false;
        if (rules_.applying == Applying::kInTurn) {
            for (Sum* sum : sums) apply(*sum, sum->samples);
        } else {
            Sum& total = join(sums);
            apply(total, total.samples);
        }
        return true;
    }

    bool joint_round(const Workers& workers, int64_t epoch) {
        std::vector<WorkerBatches*> reading;
        for (const auto& worker : workers) reading.push_back(worker->next() ? worker.get() : nullptr);
        const auto readers = static_cast<int64_t>(reading.size()) - std::count(reading.begin(), reading.end(), nullptr);
        if (readers == 0) return false;
        Sum& sum = sums_.front();
        compute(reading, 0, epoch, weights_->floats(), sum);
        if (rules_.sum) scale(sum, static_cast<float>(readers));
        if (rules_.applying == Applying::kOnce) {
            apply(sum, sum.samples);
        } else {
            for (int64_t w = 0; w < readers && !outcome_.diverged; ++w) apply(sum, sum.samples * readers);
        }
        network_.update_running(weights_->floats());
        return true;
    }

    /// Every worker once, each round in another order.
    bool round_of_any_order(const Workers& workers, int64_t epoch) {
        const EpochOrder order(static_cast<uint64_t>(config_.seed), rounds_, rules_.workers);
        bool any = false;
        for (int place = 0; place < rules_.workers && !outcome_.diverged; ++place) {
            const auto w = static_cast<std::size_t>(order.index(place));
            if (!workers[w]->next()) continue;
            any = true;
            float* const seen = rules_.stale ? snapshots_[w]->floats() : weights_->floats();
            compute({workers[w].get()}, static_cast<int>(w), epoch, seen, sums_[w]);
            apply(sums_[w], sums_[w].samples);
            network_.update_running(weights_->floats());
            if (rules_.stale) std::copy_n(weights_->floats(), elements_, seen);
        }
        return any;
    }

    /// The gradient sum of the batches of these workers, which begin with number `first` (null: none left), as one.
    void compute(const std::vector<WorkerBatches*>& workers, int first, int64_t epoch, const float* weights, Sum& sum) {
        rows_.clear();
        const int each = shards_of_worker(rules_, config_);
        for (const WorkerBatches* worker : workers) {
            worker != nullptr ? rows_.append(*worker) : rows_.append_nothing(each);
        }
        int shards = each * static_cast<int>(workers.size());
        // The job's own batches are cut where the job's shards are, and so are parts of them that consist of shards.
        const bool own = rules_.reading == Reading::kDealt && !rules_.wraps && !rules_.turns && !rules_.interleaved;
        if (static_cast<int>(workers.size()) == rules_.workers) {
            shards = plan_.shards.shards();
            rows_.set_sizes(
                own ? plan_.shards.shard_sizes(rounds_ % plan_.steps_per_epoch)
                    : ShardPlan(rows_.rows(), rows_.rows(), shards, Layout::kBatch, LastBatch::kKeep).shard_sizes(0));
        } else if (own && config_.batch.layout == "batch" && each * rules_.workers == plan_.shards.shards()) {
            const std::vector<int64_t> sizes = plan_.shards.shard_sizes(rounds_ % plan_.steps_per_epoch);
            rows_.set_sizes({sizes.data() + first * each, static_cast<std::size_t>(shards)});
        }
        std::fill_n(sum.buffer->floats(), kLead, 0.0F);
        float* const partial[] = {sum.buffer->floats()};
        network_.train_step(rows_.input(epoch), shards, {0, shards}, rows_.sizes(), weights, partial, [](int64_t) {});
        sum.samples = rows_.rows();
    }

    void scale(Sum& sum, float factor) {
        for (int64_t i = 0; i < elements_; ++i) sum.gradient()[i] *= factor;
    }

    /// The mean gradient of a worker, brought to at most the norm.
    void clip(Sum& sum) {
        const auto samples = static_cast<double>(sum.samples);
        const float* const g = sum.gradient();
        const double squares = std::inner_product(g, g + elements_, g, 0.0);
        const double norm = std::sqrt(squares) / samples;
        if (norm > clip_norm_) scale(sum, static_cast<float>(clip_norm_ / norm));
    }

    /// The sums of workers as one, in the first of them; where they are means that are added, not averaged, so much
    /// larger.
    Sum& join(const std::vector<Sum*>& sums) {
        Sum& total = *sums.front();
        for (std::size_t s = 1; s < sums.size(); ++s) {
            backend_->add(backend_->main(), kLead + elements_, total.buffer->floats(), sums[s]->buffer->floats(),
                          total.buffer->floats());
            total.samples += sums[s]->samples;
        }
        if (rules_.sum) scale(total, static_cast<float>(sums.size()));
        return total;
    }

    void apply(Sum& sum, int64_t divisor) {
        const int64_t update = ++outcome_.updates;
        const double place =
            rules_.rate_by_update ? static_cast<double>(update) : static_cast<double>(rounds_) * rules_.rate_speed + 1;
        const auto at = static_cast<int64_t>(place);
        const UpdateResult result = update_.apply(sum.gradient(), sum.loss(), divisor, update, schedule_.lr(at),
                                                  schedule_.lr_double(at), weights_->floats());
        if (!result.finite) outcome_.diverged = update;
    }

    void evaluate_after(int64_t epoch) {
        const EvalResult result = evaluate({*comm_, *backend_, network_, weights_->floats(), config_}, *data_.test);
        outcome_.epochs.push_back({epoch, result.loss, result.mse ? kNone : result.accuracy});
    }

    const WorkerRules& rules_;
    const Config config_;
    const DataSplits& data_;
    const RunPlan plan_;
    const double clip_norm_;
    std::unique_ptr<Communicator> comm_;
    std::unique_ptr<Backend> backend_;
    Network network_;
    int64_t elements_;
    Schedule schedule_;
    Update update_;
    JointRows rows_;
    std::unique_ptr<Buffer> weights_;
    std::vector<Sum> sums_;
    std::vector<std::unique_ptr<Buffer>> snapshots_;  // the weights that each worker read last
    int64_t rounds_ = 0;
    RunOutcome outcome_;
};

}  // namespace

void check_rules(const WorkerRules& rules, const Config& config) {
    if (rules.batch * rules.workers != config.batch.size && rules.reading != Reading::kWhole && !rules.turns) {
        if (config.batch.size % rules.workers == 0) {
            fail(ErrorKind::kUsage,
                 "explain --run: {} workers of --worker-batch {} are no batch.size = {}; leave it out or change one",
                 rules.workers, rules.batch, config.batch.size);
        }
        fail(ErrorKind::kUsage, "explain --run: batch.size = {} is no multiple of {} workers; choose one that is",
             config.batch.size, rules.workers);
    }
    if (rules.workers > kMostRunWorkers) {
        fail(ErrorKind::kUsage, "explain --run: {} workers in one process; it takes at most {}", rules.workers,
             kMostRunWorkers);
    }
    if (config.reduce.op != "average") {
        fail(ErrorKind::kUsage, "explain --run: reduce.op must be \"average\": it compares with the mean gradient");
    }
    if (config.schedule.name == "plateau") {
        fail(ErrorKind::kUsage,
             "explain --run: schedule.name = \"plateau\" follows each run's own evaluations; choose a schedule by "
             "epochs");
    }
}

RunOutcome train_under(const WorkerRules& rules, const Config& config, const DataSplits& data) {
    check_rules(rules, config);
    return WorkerTraining(rules, config, data).run();
}

}  // namespace lockstep

// One step: this rank's shards of the global batch, their gradient sums, the total over all ranks, one update.
#include <algorithm>

#include "core/thread_pool.hpp"
#include "io/safetensors.hpp"
#include "train/agreement.hpp"
#include "train/model_file.hpp"
#include "train/nonfinite.hpp"
#include "train/step_engine.hpp"

namespace lockstep {
namespace {

Adder device_adder(Backend& backend) {
    return {[](void* device, float* dst, const float* left, const float* right, int64_t n) {
                auto& on = *static_cast<Backend*>(device);
                on.add(on.main(), n, left, right, dst);
            },
            &backend};
}

std::unique_ptr<Reducer> choose_reducer(Communicator& comm, const Config& config, const TrainOptions& options,
                                        int64_t elements, Adder adder) {
    const ReduceLayout layout{kLead, elements};
    const int shards = static_cast<int>(config.batch.shards);
    const int64_t bucket_bytes = config.reduce.bucket_kib * 1024;
    if (options.make_reducer) return options.make_reducer(comm, shards, layout, adder);
    if (config.reduce.algorithm == "native") return make_native_reducer(comm, shards, layout, bucket_bytes, adder);
    return make_canonical_reducer(comm, shards, layout, bucket_bytes, config.reduce.small_kib * 1024, adder);
}

}  // namespace

StepEngine::StepEngine(Communicator& comm, Backend& backend, const Config& config, const RunPlan& plan,
                       const Dataset& data, const TrainOptions& options)
    : comm_(comm),
      backend_(backend),
      config_(config),
      plan_(plan),
      data_(data),
      options_(options),
      local_(shards_of_rank(plan.shards.shards(), comm.rank(), comm.size())),
      network_(model_spec(config, data.shape(), data.classes()), backend),
      schedule_(schedule_spec(config, plan)),
      update_(optimizer_spec(config), update_tensors(network_.parameters()), network_.parameters().flat_elements(),
              backend) {
    const int64_t elements = network_.parameters().flat_elements();
    weights_ = backend.allocate(static_cast<std::size_t>(elements) * sizeof(float));
    for (int i = 0; i < gradient_sums(plan, local_); ++i) {
        buffers_.push_back(backend.allocate(static_cast<std::size_t>(kLead + elements) * sizeof(float)));
        partials_.push_back(buffers_.back()->floats());
    }
    reducer_ = choose_reducer(comm, config, options, elements, device_adder(backend));
}

void StepEngine::restore(const StartingPoint& start) {
    const ParameterTable& parameters = network_.parameters();
    std::vector<float> flat(static_cast<std::size_t>(parameters.flat_elements()), 0.0F);
    const auto upload = [&](float* device) {
        backend_.upload(backend_.main(), flat.data(), device, flat.size() * sizeof(float));
    };
    if (start.model.empty()) {
        ThreadPool pool(std::max(1, available_cpus() / comm_.local_size()));
        parameters.initialise(static_cast<uint64_t>(config_.seed), flat, pool);
        upload(weights_->floats());
    } else {
        load_tensors(SafetensorsFile::parse(start.model, start.path + "/model.safetensors"), start.path, parameters, "",
                     flat.data());
        upload(weights_->floats());
        const SafetensorsFile state = SafetensorsFile::parse(start.optimizer, start.path + "/optimizer.safetensors");
        for (const Update::Slot& slot : update_.slots()) {
            std::fill(flat.begin(), flat.end(), 0.0F);
            load_tensors(state, start.path, parameters, slot.name + "/", flat.data());
            upload(slot.values);
        }
    }
    backend_.synchronize();
    if (start.step < plan_.total_steps) {
        loader_ = std::make_unique<Loader>(data_, plan_.shards,
                                           training_loader_options(config_, plan_, local_, start.step + 1));
    }
}

int StepEngine::partial_count(std::span<const int64_t> sizes) {
    std::vector<int64_t>& key = sizes_;
    key.assign(sizes.begin(), sizes.end());
    const auto known = counts_.find(key);
    if (known != counts_.end()) return known->second;
    const auto nodes = static_cast<int>(maximal_nodes(plan_.shards.shards(), local_, sizes).size());
    counts_.emplace(key, nodes);
    return nodes;
}

StepOutcome StepEngine::step() {
    for (StepWatcher* watcher : watchers_) watcher->step_begins();
    comm_.begin_work();
    const Batch& batch = loader_->next([&] { comm_.still_working(); });
    for (StepWatcher* watcher : watchers_) watcher->batch_read(batch);
    const int count = partial_count(batch.shard_sizes);
    const std::span<float* const> partial(partials_.data(), static_cast<std::size_t>(count));
    for (float* p : partials_) std::fill_n(p, kLead, 0.0F);
    partials_[0][kLeadStop] = options_.stop_requested && options_.stop_requested() ? 1.0F : 0.0F;

    // With nothing of its own a rank still needs a place for the total.
    reducer_->begin(batch.shard_sizes, count > 0 ? partial : std::span<float* const>(partials_.data(), 1));
    network_.train_step({batch.at.epoch, batch.rows, batch.pixels, batch.labels, batch.positions},
                        plan_.shards.shards(), local_, batch.shard_sizes, weights(), partial,
                        [&, end = network_.parameters().flat_elements()](int64_t first) mutable {
                            for (StepWatcher* watcher : watchers_) {
                                if (first == end) {
                                    watcher->forward_done();
                                } else {
                                    watcher->partials_final(first, end, partial);
                                }
                            }
                            end = first;
                            comm_.still_working();
                            reducer_->ready(first);
                        });
    reducer_->finish();

    const float* total = partials_[0];
    for (StepWatcher* watcher : watchers_) watcher->reduced(batch, total);
    const float loss_sum = total[kLeadLoss];
    const int64_t u = batch.at.update;
    const float lr = schedule_.lr(u);
    const UpdateResult result =
        update_.apply(total + kLead, loss_sum, batch.global_size, u, lr, schedule_.lr_double(u), weights());
    if (!result.finite) {
        const ReplayContext replay{
            comm_,       backend_, network_, weights(), batch, local_, plan_.shards.shards(), data_.shape().elements(),
            partials_[0]};
        throw SharedError(ErrorKind::kNonFinite, explain_nonfinite(replay));
    }
    const StepOutcome outcome{batch.at, loss_sum / static_cast<float>(batch.global_size), lr, result.grad_norm,
                              total[kLeadStop] > 0};
    for (StepWatcher* watcher : watchers_) watcher->updated(outcome, weights());
    return outcome;
}

std::vector<float> StepEngine::host_weights() {
    std::vector<float> flat(static_cast<std::size_t>(network_.parameters().flat_elements()));
    backend_.download(backend_.main(), weights(), flat.data(), flat.size() * sizeof(float));
    backend_.synchronize();
    return flat;
}

std::vector<std::vector<float>> StepEngine::host_slots() {
    std::vector<std::vector<float>> all;
    for (const Update::Slot& slot : update_.slots()) {
        std::vector<float>& flat = all.emplace_back(static_cast<std::size_t>(network_.parameters().flat_elements()));
        backend_.download(backend_.main(), slot.values, flat.data(), flat.size() * sizeof(float));
    }
    backend_.synchronize();
    return all;
}

}  // namespace lockstep

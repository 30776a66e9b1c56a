// One step: this rank's shards of the global batch, their gradient sums, the total over all ranks, one update.
#include <algorithm>
#include <cmath>

#include "core/thread_pool.hpp"
#include "io/safetensors.hpp"
#include "train/agreement.hpp"
#include "train/engine_reducer.hpp"
#include "train/forecast_step.hpp"
#include "train/model_file.hpp"
#include "train/nonfinite.hpp"
#include "train/step_engine.hpp"

namespace lockstep {

StepEngine::StepEngine(Communicator& comm, Backend& backend, const Config& config, const RunPlan& plan,
                       const Dataset& data, const TrainOptions& options, Communicator* exchange, StepGraphs* graphs)
    : comm_(comm),
      backend_(backend),
      config_(config),
      plan_(plan),
      data_(data),
      options_(options),
      local_(shards_of_rank(plan.shards.shards(), comm.rank(), comm.size())),
      network_(model_spec(config, data.shape(), data.classes(), data.columns()), backend, config.batch.micro, graphs,
               &comm),
      schedule_(schedule_spec(config, plan)),
      update_(optimizer_spec(config), update_tensors(network_.parameters()), network_.parameters().flat_elements(),
              backend),
      input_(backend, data.shape().elements()) {
    if (options.loss_scale) {
        loss_scale_.emplace(*options.loss_scale);
    } else if (config.device.precision == "fp16") {
        loss_scale_.emplace(LossScaleRules());
    }
    const int64_t elements = network_.parameters().flat_elements();
    weights_ = backend.allocate(static_cast<std::size_t>(network_.parameters().stored_elements()) * sizeof(float));
    for (int i = 0; i < gradient_sums(plan, local_); ++i) {
        buffers_.push_back(backend.allocate(static_cast<std::size_t>(kLead + elements) * sizeof(float)));
        partials_.push_back(buffers_.back()->floats());
    }
    if (!backend.host_sees_device()) leads_ = backend.allocate_host(partials_.size() * kLead * sizeof(float));
    Communicator& carrier = exchange != nullptr ? *exchange : comm;
    reducer_ = options.make_reducer
                   ? options.make_reducer(carrier, plan.shards.shards(), {kLead, elements}, device_adder(backend))
                   : make_engine_reducer(carrier, config, elements, backend);
}

/// Where all shards meet in the middle of a step, all rows of a rank are in memory until then.
void StepEngine::check_passes() const {
    if (config_.batch.micro == 0 || !network_.meets_in_step()) return;
    for (const int64_t step : telling_steps(config_, plan_)) {
        const std::vector<int64_t> sizes = plan_.shards.shard_sizes(step);
        network_.check_passes(plan_.shards.shards(), local_, sizes);
    }
}

void StepEngine::restore(const StartingPoint& start) {
    check_passes();
    const ParameterTable& parameters = network_.parameters();
    std::vector<float> flat(static_cast<std::size_t>(parameters.stored_elements()), 0.0F);
    const auto upload = [&](float* device) {
        backend_.upload(backend_.main(), flat.data(), device, flat.size() * sizeof(float));
    };
    if (start.model.empty() && !start.initial.file.empty()) {
        load_initial_weights(start.initial, parameters, flat.data());
        upload(weights_->floats());
    } else if (start.model.empty()) {
        ThreadPool pool(std::max(1, available_cpus() / comm_.local_size()));
        parameters.initialise(static_cast<uint64_t>(config_.seed), flat, pool);
        upload(weights_->floats());
    } else {
        load_tensors(SafetensorsFile::parse(start.model, start.path + "/model.safetensors"), start.path, parameters, "",
                     flat.data());
        upload(weights_->floats());
        const SafetensorsFile state = SafetensorsFile::parse(start.optimizer, start.path + "/optimizer.safetensors");
        flat.resize(static_cast<std::size_t>(parameters.flat_elements()));
        for (const Update::Slot& slot : update_.slots()) {
            std::fill(flat.begin(), flat.end(), 0.0F);
            load_tensors(state, start.path, parameters, slot.name + "/", flat.data());
            upload(slot.values);
        }
    }
    backend_.synchronize();
    if (loss_scale_ && start.loss_scale) loss_scale_->restore(*start.loss_scale);
    if (start.step < plan_.total_steps) {
        loader_ = std::make_unique<Loader>(
            data_, plan_.shards, input_.with_memory(training_loader_options(config_, plan_, local_, start.step + 1)));
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
    NetworkInput input = input_.rows(batch);
    if (loss_scale_) input.loss_scale = loss_scale_->value();
    write_leads();

    // What the update before read of the sums is done before anything else is added there. With nothing of its own a
    // rank still needs a place for the total.
    backend_.order(backend_.main(), backend_.communication());
    reducer_->begin(batch.shard_sizes, count > 0 ? partial : std::span<float* const>(partials_.data(), 1));
    network_.train_step(
        input, plan_.shards.shards(), local_, batch.shard_sizes, weights(), partial,
        [&, end = network_.parameters().flat_elements()](int64_t first) mutable {
            if (first == end) copy_next_batch();
            for (StepWatcher* watcher : watchers_) {
                if (first == end) {
                    watcher->forward_done();
                } else {
                    watcher->partials_final(first, end, partial);
                }
            }
            end = first;
            comm_.still_working();
            backend_.order(backend_.main(), backend_.communication());
            reducer_->ready(first);
        },
        [&] { comm_.still_working(); });
    reducer_->finish();
    backend_.order(backend_.communication(), backend_.main());

    const float* total = partials_[0];
    for (StepWatcher* watcher : watchers_) watcher->reduced(batch, total);
    const float* lead = read_lead();
    const float loss_sum = lead[kLeadLoss];
    const bool stop_agreed = lead[kLeadStop] > 0;
    const int64_t u = batch.at.update;
    const float lr = schedule_.lr(u);
    const int64_t done = u - (loss_scale_ ? loss_scale_->state().skipped : 0);
    // What this rank knows of its own sums says nothing of other ranks'.
    const bool surely_finite = comm_.size() == 1 && network_.sums_surely_finite();
    const UpdateResult result = update_.apply(total + kLead, loss_sum, batch.global_size, done, lr,
                                              schedule_.lr_double(u), weights(), input.loss_scale, surely_finite);
    StepOutcome outcome{.at = batch.at,
                        .loss = loss_sum / static_cast<float>(batch.global_size),
                        .lr = lr,
                        .grad_norm = result.grad_norm,
                        .stop_agreed = stop_agreed,
                        .loss_scale = loss_scale_ ? std::optional(input.loss_scale) : std::nullopt,
                        .skipped = false};
    if (!result.finite) {
        outcome.skipped = loss_scale_ && std::isfinite(loss_sum) && loss_scale_->skip();
        if (!outcome.skipped) explain_failure(batch, input);
    } else {
        if (loss_scale_) loss_scale_->was_finite();
        network_.update_running(weights());
    }
    for (StepWatcher* watcher : watchers_) watcher->updated(outcome, weights());
    return outcome;
}

/// Throws, naming what of this batch is not finite.
void StepEngine::explain_failure(const Batch& batch, NetworkInput input) {
    input.loss_scale = 1;
    input.alone = true;
    const ReplayContext replay{
        comm_, backend_, network_, weights(), batch, input, local_, data_.shape().elements(), partials_[0]};
    throw SharedError(ErrorKind::kNonFinite, explain_nonfinite(replay));
}

std::optional<LossScaleState> StepEngine::loss_scale() const {
    if (!loss_scale_) return std::nullopt;
    return loss_scale_->state();
}

void StepEngine::write_leads() {
    for (std::size_t i = 0; i < partials_.size(); ++i) {
        float* const lead = host_lead(i);
        std::fill_n(lead, kLead, 0.0F);
        if (i == 0) lead[kLeadStop] = options_.stop_requested && options_.stop_requested() ? 1.0F : 0.0F;
        backend_.upload(backend_.main(), lead, partials_[i], kLead * sizeof(float));
    }
}

/// Of the total; the step is over on this rank then, but for the update.
const float* StepEngine::read_lead() {
    backend_.download(backend_.main(), partials_[0], host_lead(0), kLead * sizeof(float));
    backend_.wait(backend_.main());
    return host_lead(0);
}

/// While the device is busy with this step: the rows of the next one, if they have been read by now.
void StepEngine::copy_next_batch() {
    if (backend_.host_sees_device()) return;
    if (const Batch* next = loader_->ahead()) input_.copy_ahead(*next);
}

std::vector<float> StepEngine::host_weights() {
    std::vector<float> flat(static_cast<std::size_t>(network_.parameters().stored_elements()));
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

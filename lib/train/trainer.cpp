#include "train/trainer.hpp"

#include "core/log.hpp"
#include "core/version.hpp"
#include "nn/zoo.hpp"
#include "train/agreement.hpp"
#include "train/device.hpp"
#include "train/initial_weights.hpp"
#include "train/memory_advice.hpp"
#include "train/start_check.hpp"
#include "train/training_run.hpp"

namespace lockstep {

TrainResult train_on(Communicator& comm, LoadedConfig loaded, const DataSplits& data, const TrainOptions& options) {
    comm.set_timeout(loaded.config.device.timeout_s);
    StartFacts facts{version(), "", data.train->fingerprint(), data.test ? data.test->fingerprint() : "", ""};
    if (options.check_start) check_equal_start(comm, loaded, facts);
    const Config& config = loaded.config;
    std::optional<RunPlan> plan;
    agree(comm, [&] { plan = make_run_plan(config, data.train->size()); });
    DeviceChoice device = options.make_device ? options.make_device(comm, config) : choose_device(comm, config);
    facts.arithmetic = device.backend->fingerprint();
    if (options.check_start) check_equal_arithmetic(comm, facts.arithmetic);
    std::optional<RunDirectory> directory;
    if (!options.out.empty()) directory.emplace(options.out);
    RunDirectory* const folder = directory ? &*directory : nullptr;
    InitialWeights initial = read_initial_weights(comm, config);
    agree(comm, [&] {
        facts.weights = fingerprint_of(initial);
        // Before the run directory is written, which a start that is refused leaves as it was.
        if (initial.file.empty()) return;
        const Dataset& samples = *data.train;
        const Model model = build_model(model_spec(config, samples.shape(), samples.classes(), samples.columns()));
        check_initial_weights(initial, model.parameters);
    });
    StartingPoint start = find_start(comm, folder, options.resume, options.resume_path, config, *plan, facts);
    if (start.path.empty()) start.initial = std::move(initial);
    if (start.already_done) {
        inform("{}: the run is done: {} steps", options.out, start.step);
        TrainResult result;
        result.steps = start.step;
        result.already_done = true;
        return result;
    }
    std::optional<TrainingRun> run;
    const ExchangeEndsFirst ends_first(device);
    agree(comm, [&] {
        with_memory_advice(config, comm.size(),
                           [&] { run.emplace(comm, config, data, options, *plan, facts, device, folder); });
    });
    TrainResult result;
    with_memory_advice(config, comm.size(), [&] { result = run->execute(start, loaded); });
    return result;
}

TrainResult train(Communicator& comm, LoadedConfig loaded, const TrainOptions& options) {
    comm.set_timeout(loaded.config.device.timeout_s);
    DataSplits data;
    agree(comm, [&] { comm.work_aside([&] { data = open_data(loaded.config); }); });
    return train_on(comm, std::move(loaded), data, options);
}

}  // namespace lockstep

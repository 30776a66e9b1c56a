#include "stored.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "io/safetensors.hpp"
#include "train/agreement.hpp"
#include "train/model_file.hpp"
#include "train/settings.hpp"
#include "train/start_check.hpp"

namespace lockstep {
namespace {

/// Every rank reads its own copy of the data: all must look at the same split of the same samples.
void check_equal_split(Communicator& comm, const std::string& split, const std::string& fingerprint) {
    const std::vector<std::string> hosts = comm.all_gather(host_name());
    const std::vector<std::string> splits = comm.all_gather(split);
    const std::vector<std::string> data = comm.all_gather(fingerprint);
    for (std::size_t r = 1; r < data.size(); ++r) {
        const std::string who = fmt::format("rank {} on {}", r, hosts[r]);
        if (splits[r] != splits[0]) {
            throw SharedError(ErrorKind::kUsage, fmt::format("unequal start: --split is {} on {}, {} on rank 0",
                                                             splits[r], who, splits[0]));
        }
        if (data[r] != data[0]) {
            throw SharedError(ErrorKind::kData, fmt::format("unequal start: the {} data of {} are not rank 0's ({} "
                                                            "against {}); copy the same files to every host",
                                                            split, who, data[r], data[0]));
        }
    }
}

}  // namespace

void StoredOptions::add_to(CLI::App& command, bool with_checkpoint) {
    command
        .add_option("--run", run, with_checkpoint ? "Run directory; this or --checkpoint is needed" : "Run directory")
        ->type_name("DIR");
    if (with_checkpoint) {
        command
            .add_option("--checkpoint", checkpoint,
                        "A checkpoint, or a file that names one (checkpoints/best), with -c; this or --run is needed")
            ->type_name("PATH");
        command.add_option("-c,--config", files, "Config file for --checkpoint")
            ->type_name("FILE")
            ->allow_extra_args(false);
    }
    command.add_option("--set", sets, "Set one key, for example device.threads=2")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    command.add_option("--split", split, "Which split")
        ->capture_default_str()
        ->check(CLI::IsMember({"test", "train", "validation"}))
        ->type_name("test|train|validation");
    command.add_flag("--allow-singleton", allow_singleton, "Work alone though a launcher without MPI started several");
}

void StoredOptions::check() const {
    if (run.empty() == checkpoint.empty()) fail(ErrorKind::kUsage, "give --run DIR, or --checkpoint PATH with -c FILE");
    if (!checkpoint.empty() && files.empty())
        fail(ErrorKind::kUsage, "--checkpoint needs -c FILE: which data and model?");
    if (!run.empty() && !files.empty()) fail(ErrorKind::kUsage, "-c goes with --checkpoint; a run has its own config");
}

StoredModel StoredOptions::read() const {
    if (!run.empty()) return read_run(run, sets);
    const LoadedConfig loaded =
        load_config({files, config_environment(), sets, std::filesystem::current_path().string()});
    return read_from_checkpoint(checkpoint, loaded.config);
}

StoredSession::StoredSession(Communicator& comm, const StoredOptions& options)
    : comm_(comm), stored_(read_on_first(comm, [&] {
          options.check();
          return options.read();
      })) {
    const Config& config = stored_.config;
    comm.set_timeout(config.device.timeout_s);
    agree(comm, [&] {
        Config needed = config;
        if (!options.input.empty()) needed.data.test = {};  // what is predicted stands in its place
        comm.work_aside([&] { splits_ = open_data(needed); });
        check_learned_from(stored_, *splits_.train);
        if (!options.input.empty()) {
            unlabelled_ = open_unlabelled(config, options.input, *splits_.train);
            split_ = unlabelled_.get();
            return;
        }
        split_ = options.split == "train"        ? splits_.train.get()
                 : options.split == "validation" ? splits_.validation.get()
                                                 : splits_.test.get();
        if (split_ == nullptr) {
            const char* const other = splits_.test != nullptr         ? "--split test or "
                                      : splits_.validation != nullptr ? "--split validation or "
                                                                      : "";
            fail(ErrorKind::kUsage, "data.{} is not set: there is no such split; look at {}--split train",
                 options.split, other);
        }
    });
    check_equal_split(comm, options.input.empty() ? options.split : "--input", split_->fingerprint());
    device_ = choose_device(comm, config);
    check_equal_arithmetic(comm, device_.backend->fingerprint());
    agree(comm, [&] {
        Backend& backend = *device_.backend;
        network_ = std::make_unique<Network>(
            model_spec(config, split_->shape(), splits_.train->classes(), splits_.train->columns()), backend,
            config.batch.micro);
        const ParameterTable& parameters = network_->parameters();
        std::vector<float> flat(static_cast<std::size_t>(parameters.stored_elements()), 0.0F);
        load_tensors(SafetensorsFile::parse(stored_.model, stored_.where), stored_.where, parameters, "", flat.data());
        weights_ = backend.allocate(flat.size() * sizeof(float));
        backend.upload(backend.main(), flat.data(), weights_->floats(), flat.size() * sizeof(float));
        backend.synchronize();
    });
}

EvaluationContext StoredSession::context() {
    return {comm_, *device_.backend, *network_, weights_->floats(), stored_.config};
}

int64_t StoredSession::steps_per_epoch() const {
    return make_run_plan(stored_.config, splits_.train->size()).steps_per_epoch;
}

}  // namespace lockstep

#include "explain/config_import.hpp"

#include "config/nearest.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

struct Trainer {
    std::string_view name;
    void (*import)(CommandLine&, Imported&);
    FlagSpelling spelling;
};

std::vector<Trainer> known_trainers() {
    return {{"tf_cnn_benchmarks", import_tf_cnn_benchmarks, {}},
            {"estimator",
             import_estimator,
             {{{"bs", "batch_size"},
               {"te", "train_epochs"},
               {"ebe", "epochs_between_evals"},
               {"dd", "data_dir"},
               {"md", "model_dir"},
               {"mt", "model_type"},
               {"hk", "hooks"},
               {"ed", "export_dir"},
               {"ng", "num_gpus"},
               {"st", "stop_threshold"}},
              {"clean", "download_if_missing"},
              {"eval_files", "hooks", "train_files"}}},
            {"horovod",
             import_horovod,
             {{}, {"fp16_allreduce", "no_cuda", "use_adasum", "use_amp", "use_mixed_precision"}, {}}},
            {"ddp",
             import_ddp,
             {{{"a", "arch"}, {"b", "batch_size"}, {"e", "evaluate"}, {"j", "workers"}, {"p", "print_freq"}},
              {"amp", "apex", "cache_dataset", "cos", "deepspeed", "drop_last", "dummy", "evaluate", "fp16",
               "model_ema", "multiprocessing_distributed", "no_accel", "pretrained", "ra_sampler", "sync_bn",
               "test_only", "use_deterministic_algorithms", "use_env", "use_v2"},
              {}}}};
}

}  // namespace

ImportedConfig import_config(std::string_view from, std::span<const std::string> words) {
    std::vector<std::string> names;
    for (const Trainer& trainer : known_trainers()) {
        names.emplace_back(trainer.name);
        if (trainer.name != from) continue;
        CommandLine line = split_command_line(words, trainer.spelling);
        Imported config;
        try {
            trainer.import(line, config);
        } catch (const Error& error) {  // its words may be those of the command line
            throw Error(error.kind(), printable(error.what()));
        }
        config.name_the_rest(line);
        if (const std::vector<std::string> faults = config.faults(line); !faults.empty())
            fail(ErrorKind::kUsage, "{}", fmt::join(faults, "\n"));
        return {config.toml(
                    fmt::format("From {}: the job as on one machine; any number of ranks gives the same bits.", from)),
                config.refused(), config.changed()};
    }
    fail(ErrorKind::kUsage, "--from {}: it is tf_cnn_benchmarks, estimator, horovod or ddp{}", printable(from),
         did_you_mean(nearest(from, names)));
}

}  // namespace lockstep

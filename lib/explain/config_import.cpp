#include "explain/config_import.hpp"

#include "config/nearest.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

struct Trainer {
    std::string_view name;
    void (*import)(FlagList&, Imported&);
    std::map<std::string, std::string> short_names;
    std::set<std::string> switches;
};

std::vector<Trainer> known_trainers() {
    return {{"tf_cnn_benchmarks", import_tf_cnn_benchmarks, {}, {}},
            {"estimator", import_estimator, {}, {}},
            {"horovod", import_horovod, {}, {}},
            {"ddp",
             import_ddp,
             {{"a", "arch"}, {"b", "batch_size"}, {"j", "workers"}, {"p", "print_freq"}, {"e", "evaluate"}},
             {"amp", "cache_dataset", "drop_last", "dummy", "evaluate", "model_ema", "multiprocessing_distributed",
              "pretrained", "sync_bn", "test_only", "use_deterministic_algorithms", "use_env"}}};
}

}  // namespace

ImportedConfig import_config(std::string_view from, std::span<const std::string> words) {
    std::vector<std::string> names;
    for (const Trainer& trainer : known_trainers()) {
        names.emplace_back(trainer.name);
        if (trainer.name != from) continue;
        FlagList flags(words, trainer.short_names, trainer.switches);
        Imported config;
        trainer.import(flags, config);
        config.name_the_rest(flags);
        if (const std::vector<std::string> faults = config.faults(flags); !faults.empty())
            fail(ErrorKind::kUsage, "{}", fmt::join(faults, "\n"));
        return {config.toml(
                    fmt::format("From {}: the job as on one machine; any number of ranks gives the same bits.", from)),
                config.refused(), config.changed()};
    }
    fail(ErrorKind::kUsage, "--from {}: it is tf_cnn_benchmarks, estimator, horovod or ddp{}", from,
         did_you_mean(nearest(from, names)));
}

}  // namespace lockstep

#include "explain/scheme.hpp"

#include "config/nearest.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr Scheme kSchemes[] = {
    {.name = "estimator",
     .system = "tf.estimator on a cluster: a master, workers, parameter servers",
     .reading = Reading::kWhole,
     .applying = Applying::kAsynchronously,
     .counting = Counting::kEveryWorker,
     .batch_of_worker = true},
    {.name = "tf-parameter-server",
     .system = "tf_cnn_benchmarks --variable_update=parameter_server",
     .reading = Reading::kSameSamples,
     .applying = Applying::kAsynchronously,
     .wraps = true},
    {.name = "tf-replicated",
     .system = "tf_cnn_benchmarks --variable_update=replicated; workers are the GPUs of one machine",
     .reading = Reading::kDealt,
     .applying = Applying::kOnce,
     .sums = true,
     .towers_sum = true,
     .wraps = true},
    {.name = "tf-distributed-replicated",
     .system = "tf_cnn_benchmarks --variable_update=distributed_replicated",
     .reading = Reading::kSameSamples,
     .applying = Applying::kInTurn,
     .wraps = true},
    {.name = "tf-distributed-all-reduce",
     .system = "tf_cnn_benchmarks --variable_update=distributed_all_reduce",
     .reading = Reading::kSameSamples,
     .applying = Applying::kOnce,
     .counting = Counting::kStretched,
     .sums = true,
     .towers_sum = true,
     .wraps = true},
    {.name = "tf-collective-all-reduce",
     .system = "tf_cnn_benchmarks --variable_update=collective_all_reduce",
     .reading = Reading::kSameSamples,
     .applying = Applying::kOnce,
     .sums = true,
     .towers_sum = true,
     .wraps = true},
    {.name = "horovod-sum",
     .system = "Horovod with average=False (so does tf_cnn_benchmarks)",
     .reading = Reading::kPaddedParts,
     .applying = Applying::kOnce,
     .sums = true},
    {.name = "horovod-average",
     .system = "Horovod as its examples use it: DistributedOptimizer, DistributedSampler",
     .reading = Reading::kPaddedParts,
     .applying = Applying::kOnce},
    {.name = "ddp",
     .system = "PyTorch DistributedDataParallel with DistributedSampler",
     .reading = Reading::kPaddedParts,
     .applying = Applying::kOnce},
    {.name = "ddp-drop-last",
     .system = "the same with drop_last=True in sampler and loader",
     .reading = Reading::kTrimmedParts,
     .applying = Applying::kOnce},
    {.name = "local-clip",
     .system = "data parallel with gradients clipped on each worker, before the average",
     .reading = Reading::kPaddedParts,
     .applying = Applying::kOnce,
     .clips_locally = true},
};

}  // namespace

std::span<const Scheme> schemes() {
    return kSchemes;
}

const Scheme& scheme_named(std::string_view name) {
    std::vector<std::string> names;
    for (const Scheme& scheme : kSchemes) {
        if (scheme.name == name) return scheme;
        names.emplace_back(scheme.name);
    }
    std::string known;
    for (const std::string& other : names) known.append(known.empty() ? "" : ", ").append(other);
    fail(ErrorKind::kUsage, "--scheme {}: no such scheme{}; there are {}", name, did_you_mean(nearest(name, names)),
         known);
}

}  // namespace lockstep

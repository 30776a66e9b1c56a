// tf_cnn_benchmarks' flags. Its batch is a GPU's, its rules for gradients are those of --variable_update, and what is
// not given follows from the model.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "explain/import_tf_cnn.hpp"
#include "explain/launch.hpp"

namespace lockstep {
namespace {

constexpr TfModel kModels[] = {
    {"trivial", "trivial", 227, 32, 0.005, false},  {"lenet", "lenet", 28, 32, 0.005, false},
    {"alexnet", "alexnet", 227, 512, 0.005, false}, {"vgg11", "vgg11", 224, 64, 0.005, false},
    {"vgg16", "vgg16", 224, 64, 0.005, false},      {"googlenet", "googlenet", 224, 32, 0.005, false},
    {"resnet50", "resnet50", 224, 64, 0, true},     {"resnet50_v1.5", "resnet50_v1.5", 224, 64, 0, true},
    {"resnet20", "resnet20", 32, 128, 0, true},     {"resnet32", "resnet32", 32, 128, 0, true},
    {"resnet44", "resnet44", 32, 128, 0, true},     {"resnet56", "resnet56", 32, 128, 0, true}};

const TfModel& model_of(const std::string& spelled, const std::string& name) {
    std::string known;
    for (const TfModel& model : kModels) {
        if (model.theirs == name) return model;
        known.append(known.empty() ? "" : ", ").append(model.theirs);
    }
    fail(ErrorKind::kUsage,
         "{}: Lockstep has no such network; it has {}, and model.name = \"custom\" for a list of layers", spelled,
         known);
}

constexpr int64_t kMostTfEpochs = 1'000'000;  // far beyond any, so that products with it stay in 64 bits

class TfImport {
  public:
    TfImport(CommandLine& line, Imported& config) : line_(line), f_(line.flags), c_(config) {}

    void run() {
        read_model();
        read_batch();
        import_parts({.workers = job_.gpus * job_.workers, .who = "GPU", .batch = job_.batch, .each = per_gpu_}, c_);
        read_data();
        read_length();
        import_tf_optimizer(f_, c_, job_);
        import_tf_rates(f_, c_, job_);
        read_running();
        name_what_has_no_line();
    }

  private:
    void read_model() {
        data_name_ = f_.take_text({"data_name"}).value_or("");
        const FlagList::Flag* flag = f_.take_valued({"model"});
        const std::string name = flag != nullptr ? flag->value : "trivial";
        job_.model = &model_of(flag != nullptr ? flag->spelled : "--model=trivial", name);
        if (data_name_.empty()) data_name_ = job_.model->side == 32 ? "cifar10" : "imagenet";
        job_.cifar = data_name_ == "cifar10";
        c_.set_text("model.name", job_.model->ours, flag != nullptr ? flag->spelled : "its --model if none is given");
        c_.set_text("model.flavor", "tf", "its layers, paddings and initial weights");
        if (!job_.cifar && (job_.model->ours == "alexnet" || job_.model->ours.starts_with("vgg"))) {
            c_.set("model.dropout", 0.5, "of its two large layers");
        }
        if (!job_.model->batch_norm) return;
        c_.set_text("batch_norm.scope", "global", "one GPU with the whole batch; theirs: each GPU by itself");
        c_.set("batch_norm.momentum", 0.9, "its batch norm's decay");
        c_.set("batch_norm.epsilon", 1e-5, "its batch norm's epsilon");
    }

    void read_batch() {
        const int64_t given = f_.take_count({"batch_size"}).value_or(0);
        per_gpu_ = given > 0 ? given : job_.cifar && job_.model->ours == "alexnet" ? 128 : job_.model->batch;
        job_.gpus = f_.take_count({"num_gpus"}, 1).value_or(1);
        const std::string hosts = f_.take_text({"worker_hosts"}).value_or("");
        job_.workers = std::max<int64_t>(1, static_cast<int64_t>(parts_of(hosts).size()));
        update_ = f_.take_text({"variable_update"}).value_or("parameter_server");
        read_launcher();
        const std::string words =
            fmt::format("{} x {} x {}",
                        given > 0 ? fmt::format("--batch_size={}", given) : fmt::format("its default of {}", per_gpu_),
                        counted(job_.gpus, "GPU"), counted(job_.workers, "worker"));
        job_.batch = batch_product({per_gpu_, job_.gpus, job_.workers}, words);
        c_.set("batch.size", job_.batch, fmt::format("{}: theirs is a GPU's, this is of all", words));
        c_.remark(fmt::format("--variable_update={}: {}", update_, what_it_did()));
    }

    /// The processes that mpirun or horovodrun start are workers for Horovod; other modes know of workers by
    /// --worker_hosts alone.
    void read_launcher() {
        const Launch launch = read_launch(line_);
        if (!launch.missing.empty()) {
            if (update_ == "horovod")
                fail(ErrorKind::kUsage, "tf_cnn_benchmarks: how many workers? Write {}", launch.missing);
        } else if (launch.processes && update_ == "horovod") {
            job_.workers = *launch.processes;
        } else if (launch.processes && *launch.processes > 1 && job_.workers == 1) {
            c_.refuse(
                fmt::format("{}: without --variable_update=horovod the same command so many times; this is the job "
                            "of one",
                            launch.words));
        }
    }

    /// To a gradient, compared with the mean of one machine.
    std::string what_it_did() const {
        if (update_ == "replicated") {
            // With a rate of its own for a batch ResNet-50 is the exception.
            const bool own_rate = job_.model->lr == 0 && job_.model->side != 32 &&
                                  f_.name_of({"init_learning_rate", "piecewise_learning_rate_schedule"}).empty();
            if (own_rate && job_.gpus > 1) {
                return fmt::format("added {} GPUs' gradients and divided its own learning rate by {}: as here",
                                   job_.gpus, job_.gpus);
            }
            return job_.gpus == 1 ? "one GPU, nothing to share"
                                  : fmt::format("added {} GPUs' gradients: lr acted as {} times what it says here",
                                                job_.gpus, job_.gpus);
        }
        if (update_ == "independent") return "every GPU trained a model of its own; this is one model";
        if (update_ == "distributed_all_reduce" || update_ == "collective_all_reduce") {
            return fmt::format("added the gradients of {} GPUs: lr acted as {} times what it says here",
                               job_.gpus * job_.workers, job_.gpus * job_.workers);
        }
        if (update_ == "horovod") {
            return job_.workers == 1
                       ? "one worker, as no launcher with -np W is named; put it in front"
                       : fmt::format("added {} workers' gradients: lr acted as {} times what it says here",
                                     job_.workers, job_.workers);
        }
        if (job_.workers == 1) return "the mean over its GPUs, as here";
        return fmt::format(
            "{} workers updated the weights in turn: lr acted as {} times what it says here, momentum stepped "
            "{} times",
            job_.workers, job_.workers, job_.workers);
    }

    void read_data() {
        const std::string folder = f_.take_text({"data_dir"}).value_or("");
        job_.samples = import_known_data(data_name_, folder, job_.cifar ? 32 : job_.model->side, c_);
        if (job_.samples == 0) {
            fail(ErrorKind::kUsage, "--data_name={}: Lockstep knows imagenet and cifar10 of that program's data sets",
                 data_name_);
        }
        read_distortions(folder);
    }

    /// Crops and flips of ImageNet are always on there, those of CIFAR a part of --distortions, as colours are.
    void read_distortions(const std::string& folder) {
        const auto given = f_.take_switch("distortions");
        const std::string method = f_.take_text({"resize_method"}).value_or("bilinear");
        if (folder.empty()) return;
        const bool distorts = given.value_or(true);
        const std::string words =
            given ? "--distortions" : "--distortions, which are on there (in its last versions off)";
        if (job_.cifar && !distorts) return;
        if (job_.cifar) {
            c_.set("augment.pad_crop", int64_t{4}, words + ": a window of the picture with a border");
            c_.set("augment.flip", "true", "left and right swapped at random");
            return;
        }
        c_.set("augment.resized_crop", "true", "a random part, resized, with or without --distortions");
        c_.set("augment.scale", "[0.05, 1.0]", "its shares of the area");
        c_.set("augment.ratio", "[0.75, 1.33]", "its shapes");
        c_.set("augment.flip", "true", "left and right swapped at random, with or without --distortions");
        if (method != "bilinear" && method != "round_robin")
            c_.refuse(fmt::format("--resize_method={}: pictures are resized bilinearly here", method));
        if (given.value_or(false)) {
            c_.refuse(
                "--distortions: of colours, too, there; augment.brightness, contrast and saturation come near, hue has "
                "no key");
        }
        name_center_crop("", job_.model->side, c_);
    }

    void read_length() {
        const auto epochs = f_.take_number({"num_epochs"});
        const auto batches = f_.take_count({"num_batches"}, 1);
        if (!epochs) {
            c_.set("train.steps", batches.value_or(100),
                   batches ? "--num_batches: of every worker, not divided there either"
                           : "its --num_batches if none is given");
            return;
        }
        if (*epochs <= 0) fail(ErrorKind::kUsage, "--num_epochs={}: must be more than 0", *epochs);
        if (*epochs > kMostTfEpochs)
            fail(ErrorKind::kUsage, "--num_epochs={}: must be at most {}", *epochs, kMostTfEpochs);
        if (std::floor(*epochs) == *epochs) {
            c_.set("train.epochs", static_cast<int64_t>(*epochs),
                   job_.workers == 1 ? "--num_epochs" : "--num_epochs: divided between workers there, of all here");
            return;
        }
        const double steps = std::ceil(*epochs * static_cast<double>(job_.samples) / static_cast<double>(job_.batch));
        c_.set("train.steps", static_cast<int64_t>(steps),
               fmt::format("--num_epochs={}, rounded up to whole batches", *epochs));
    }

    void read_running() {
        c_.set_counts(f_, {{{"tf_random_seed"}, "seed", kOtherNumbers, 0},
                           {{"display_every"}, "log.every"},
                           {{"save_model_steps"}, "checkpoint.every_steps"},
                           {{"max_ckpts_to_keep"}, "checkpoint.keep"},
                           {{"eval_during_training_every_n_epochs"}, "eval.every_epochs"},
                           {{"eval_during_training_every_n_steps"}, "eval.every_steps"}});
        if (f_.take_switch("use_fp16").value_or(false)) {
            c_.set_text("device.arithmetic", "vendor", "--use_fp16 needs a GPU's own units");
            c_.set_text("device.precision", "fp16", "--use_fp16");
            c_.change(half_words("--use_fp16", "fp16"));
        }
        if (const auto folder = f_.take_text({"train_dir"}))
            c_.remark(fmt::format("--train_dir={}: lockstep train --out {}", *folder, *folder));
    }

    void name_what_has_no_line() {
        c_.not_needed(
            f_, {"job_name", "task_index", "ps_hosts", "controller_host", "num_intra_threads", "num_inter_threads"},
            "mpirun starts the ranks, and none is special");
        c_.not_needed(f_,
                      {"local_parameter_device", "staged_vars", "cross_replica_sync", "sync_on_finish",
                       "all_reduce_spec", "gradient_repacking", "allreduce_merge_scope", "agg_small_grads_max_bytes",
                       "agg_small_grads_max_group", "hierarchical_copy", "network_topology",
                       "compact_gradient_transfer", "variable_consistency", "horovod_device"},
                      "how sums travel changes no bit here");
        c_.not_needed(f_,
                      {"data_format",
                       "winograd_nonfused",
                       "xla",
                       "xla_compile",
                       "use_datasets",
                       "datasets_num_private_threads",
                       "datasets_prefetch_buffer_size",
                       "batchnorm_persistent",
                       "allow_growth",
                       "gpu_memory_frac_for_testing",
                       "gpu_thread_mode",
                       "per_gpu_thread_count",
                       "device",
                       "mkl",
                       "kmp_blocktime",
                       "single_l2_loss_op",
                       "fuse_decode_and_crop",
                       "cache_data",
                       "print_training_accuracy",
                       "batch_group_size",
                       "display_perf_ewma",
                       "autotune_threshold",
                       "gpu_indices",
                       "input_preprocessor",
                       "use_unified_memory",
                       "timestamped_allocator",
                       "gpu_kt_max_interval",
                       "gpu_kt_max_bytes",
                       "gpu_kt_max_pending",
                       "use_tf_layers",
                       "datasets_use_prefetch",
                       "datasets_use_caching",
                       "datasets_parallel_interleave_cycle_length",
                       "datasets_sloppy_parallel_interleave",
                       "datasets_parallel_interleave_prefetch",
                       "multi_device_iterator_max_buffer_size",
                       "force_gpu_compatible",
                       "distort_color_in_yiq",
                       "enable_optimizations",
                       "rewriter_config",
                       "use_resource_vars",
                       "compute_lr_on_cpu",
                       "sparse_to_dense_grads",
                       "kmp_affinity",
                       "kmp_settings",
                       "use_numa_affinity",
                       "trace_file",
                       "use_chrome_trace_format",
                       "tfprof_file",
                       "graph_file",
                       "partitioned_graph_file_prefix",
                       "benchmark_log_dir",
                       "benchmark_test_id",
                       "debugger"},
                      "a matter of speed or display");
        c_.not_needed(
            f_,
            {"summary_verbosity", "save_summaries_steps", "loss_type_to_report", "num_warmup_batches", "flush_stdout"},
            "metrics.jsonl has every step's loss and every evaluation");
        c_.not_needed(f_, {"eval_dir", "eval_interval_secs", "eval_batch_size", "num_eval_batches", "num_eval_epochs"},
                      "lockstep eval sees every sample once");
        c_.cannot(f_, {"gradient_clip"},
                  "clips element by element on each GPU; optimizer.clip_norm clips the whole gradient once");
        c_.cannot(f_, {"eval", "forward_only"}, "another command: lockstep eval, lockstep predict");
        c_.cannot(f_, {"fp16_loss_scale", "fp16_enable_auto_loss_scale", "fp16_vars", "fp16_inc_loss_scale_every_n"},
                  "the loss scale follows Lockstep's own rule, and weights are fp32");
        c_.cannot(f_, {"save_model_secs"}, "the clock decides nothing here; checkpoint.every_steps does");
        c_.cannot(f_, {"eval_during_training_at_specified_steps", "eval_during_training_at_specified_epochs"},
                  "eval.every_steps and eval.every_epochs are regular");
        c_.cannot(f_, {"stop_at_top_1_accuracy"}, "train.stop_metric ends a run that gets no better, not at a number");
        c_.cannot(f_, {"ml_perf"}, "write data.mean = [0.485, 0.458, 0.408] and data.std = [0.00392157]");
        c_.cannot(f_, {"backbone_model_path"}, "model.weights takes a safetensors file of PyTorch's names");
        c_.cannot(f_, {"datasets_repeat_cached_sample"}, "each sample is read once an epoch");
    }

    CommandLine& line_;
    FlagList& f_;
    Imported& c_;
    TfJob job_;
    int64_t per_gpu_ = 0;  // samples
    std::string data_name_, update_;
};

}  // namespace

void import_tf_cnn_benchmarks(CommandLine& line, Imported& config) {
    TfImport(line, config).run();
}

}  // namespace lockstep

// tf_cnn_benchmarks' flags. Its batch is a GPU's, its rules for gradients are those of --variable_update, and what is
// not given follows from the model.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "explain/config_import.hpp"
#include "explain/their_schedule.hpp"

namespace lockstep {
namespace {

struct TfModel {
    std::string_view theirs;  // --model
    std::string_view ours;    // model.name
    int64_t side;             // of its pictures
    int64_t batch;            // if none is given
    double lr;                // if none is given; 0: a course of its own
    bool batch_norm;
};

constexpr TfModel kModels[] = {
    {"trivial", "trivial", 227, 32, 0.005, false},  {"lenet", "lenet", 28, 32, 0.005, false},
    {"alexnet", "alexnet", 227, 512, 0.005, false}, {"vgg11", "vgg11", 224, 64, 0.005, false},
    {"vgg16", "vgg16", 224, 64, 0.005, false},      {"googlenet", "googlenet", 224, 32, 0.005, false},
    {"resnet50", "resnet50", 224, 64, 0, true},     {"resnet20", "resnet20", 32, 128, 0, true},
    {"resnet32", "resnet32", 32, 128, 0, true},     {"resnet44", "resnet44", 32, 128, 0, true},
    {"resnet56", "resnet56", 32, 128, 0, true}};

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

class TfImport {
  public:
    TfImport(FlagList& flags, Imported& config) : f_(flags), c_(config) {}

    void run() {
        read_model();
        read_batch();
        read_data();
        read_length();
        read_optimizer();
        read_rates();
        read_running();
        name_what_has_no_line();
    }

  private:
    void read_model() {
        data_name_ = f_.take_text({"data_name"}).value_or("");
        const FlagList::Flag* flag = f_.take({"model"});
        const std::string name = flag != nullptr ? flag->value : "trivial";
        model_ = &model_of(flag != nullptr ? flag->spelled : "--model=trivial", name);
        if (data_name_.empty()) data_name_ = model_->side == 32 ? "cifar10" : "imagenet";
        cifar_ = data_name_ == "cifar10";
        c_.set_text("model.name", model_->ours, flag != nullptr ? flag->spelled : "its --model if none is given");
        c_.set_text("model.flavor", "tf", "its layers, paddings and initial weights");
        if (!model_->batch_norm) return;
        c_.set_text("batch_norm.scope", "global", "one GPU with the whole batch; theirs: each GPU by itself");
        c_.set("batch_norm.momentum", 0.9, "its batch norm's decay");
        c_.set("batch_norm.epsilon", 1e-5, "its batch norm's epsilon");
    }

    void read_batch() {
        const int64_t given = f_.take_count({"batch_size"}).value_or(0);
        const int64_t per_gpu = given > 0 ? given : cifar_ && model_->ours == "alexnet" ? 128 : model_->batch;
        gpus_ = f_.take_count({"num_gpus"}, 1).value_or(1);
        const std::string hosts = f_.take_text({"worker_hosts"}).value_or("");
        workers_ = std::max<int64_t>(1, static_cast<int64_t>(parts_of(hosts).size()));
        update_ = f_.take_text({"variable_update"}).value_or("parameter_server");
        batch_ = per_gpu * gpus_ * workers_;
        c_.set(
            "batch.size", batch_,
            fmt::format("{} x {} x {}: theirs is a GPU's, this is of all",
                        given > 0 ? fmt::format("--batch_size={}", given) : fmt::format("its default of {}", per_gpu),
                        counted(gpus_, "GPU"), counted(workers_, "worker")));
        c_.remark(fmt::format("--variable_update={}: {}", update_, what_it_did()));
    }

    /// To a gradient, compared with the mean of one machine.
    std::string what_it_did() const {
        if (update_ == "replicated") {
            return gpus_ == 1
                       ? "one GPU, nothing to share"
                       : fmt::format("added {} GPUs' gradients: lr acted as {} times what it says here", gpus_, gpus_);
        }
        if (update_ == "independent") return "every GPU trained a model of its own; this is one model";
        if (update_ == "distributed_all_reduce" || update_ == "collective_all_reduce") {
            return fmt::format("added the gradients of {} GPUs: lr acted as {} times what it says here",
                               gpus_ * workers_, gpus_ * workers_);
        }
        if (update_ == "horovod") return "added all workers' gradients: lr acted as W times what it says here";
        if (workers_ == 1) return "the mean over its GPUs, as here";
        return fmt::format(
            "{} workers updated the weights in turn: lr acted as {} times what it says here, momentum stepped "
            "{} times",
            workers_, workers_, workers_);
    }

    void read_data() {
        const std::string folder = f_.take_text({"data_dir"}).value_or("");
        samples_ = import_known_data(data_name_, folder, cifar_ ? 32 : model_->side, c_);
        if (samples_ == 0) {
            fail(ErrorKind::kUsage, "--data_name={}: Lockstep knows imagenet and cifar10 of that program's data sets",
                 data_name_);
        }
        const bool distorts = f_.take_switch("distortions").value_or(true);
        if (folder.empty() || !distorts) return;
        if (cifar_) {
            c_.set("augment.pad_crop", int64_t{4},
                   "--distortions, which are on there: a window of the picture with a border");
        } else {
            c_.set("augment.resized_crop", "true", "--distortions, which are on there: a random part, resized");
        }
        c_.set("augment.flip", "true", "--distortions: left and right swapped at random");
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
        epochs_ = *epochs;
        if (std::floor(*epochs) == *epochs) {
            c_.set("train.epochs", static_cast<int64_t>(*epochs),
                   workers_ == 1 ? "--num_epochs" : "--num_epochs: divided between workers there, of all here");
            return;
        }
        const double steps = std::ceil(*epochs * static_cast<double>(samples_) / static_cast<double>(batch_));
        c_.set("train.steps", static_cast<int64_t>(steps),
               fmt::format("--num_epochs={}, rounded up to whole batches", *epochs));
    }

    void read_optimizer() {
        const std::string name = f_.take_text({"optimizer"}).value_or("sgd");
        const double momentum = f_.take_number({"momentum"}).value_or(0.9);
        const double rms_decay = f_.take_number({"rmsprop_decay"}).value_or(0.9);
        const double rms_momentum = f_.take_number({"rmsprop_momentum"}).value_or(0.9);
        const double rms_epsilon = f_.take_number({"rmsprop_epsilon"}).value_or(1.0);
        const double beta1 = f_.take_number({"adam_beta1"}).value_or(0.9);
        const double beta2 = f_.take_number({"adam_beta2"}).value_or(0.999);
        const double adam_epsilon = f_.take_number({"adam_epsilon"}).value_or(1e-8);
        if (name == "momentum") {
            c_.set_text("optimizer.name", "nesterov", "--optimizer=momentum: always Nesterov's there");
            c_.set("optimizer.momentum", momentum, "--momentum");
        } else if (name == "rmsprop") {
            c_.set_text("optimizer.name", "rmsprop", "--optimizer=rmsprop");
            c_.set("optimizer.rho", rms_decay, "--rmsprop_decay");
            c_.set("optimizer.rmsprop_momentum", rms_momentum, "--rmsprop_momentum: of the step");
            c_.set("optimizer.epsilon", rms_epsilon, "--rmsprop_epsilon");
            c_.set("optimizer.epsilon_inside", "true", "TensorFlow adds it inside the root");
            c_.set("optimizer.initial", 1.0, "TensorFlow's mean square starts at 1");
        } else if (name == "adam") {
            c_.set_text("optimizer.name", "adam", "--optimizer=adam");
            c_.set("optimizer.beta1", beta1, "--adam_beta1");
            c_.set("optimizer.beta2", beta2, "--adam_beta2");
            c_.set("optimizer.epsilon", adam_epsilon,
                   "--adam_epsilon; theirs stands beside the uncorrected root: the larger, the earlier the step");
        } else if (name == "sgd") {
            c_.set_text("optimizer.name", "sgd", "--optimizer=sgd, its default");
        } else {
            fail(ErrorKind::kUsage, "--optimizer={}: Lockstep knows sgd, momentum, rmsprop and adam of that program's",
                 name);
        }
        const double decay = f_.take_number({"weight_decay"}).value_or(4e-5);
        if (decay == 0) return;
        c_.set("optimizer.l2", decay, "--weight_decay (4e-05 if not given): a part of its loss");
        if (model_->batch_norm) {
            c_.set_text("optimizer.decay", "weights", "not of batch norm; theirs has the last layer's bias, too");
        }
    }

    /// A schedule by epochs, with the step at which each rate begins there and here.
    void set_piecewise(const PiecewiseRates& rates, bool models_own, const std::string& why) {
        const TheirSteps steps{samples_, batch_};
        std::string moves;
        for (const double epoch : rates.epochs) {
            moves += fmt::format("{}{} -> {}", moves.empty() ? "" : ", ",
                                 their_first_step_after(steps, epoch) + (models_own ? 1 : 0),
                                 our_first_update_after(steps, epoch));
        }
        c_.set_text("schedule.name", "piecewise", why);
        c_.set("schedule.boundaries", toml_list(rates.epochs),
               fmt::format("epochs; steps from 0 there -> updates from 1 here: {}", moves));
        c_.set("schedule.values", toml_list(rates.values), "rates before, between and after them");
    }

    void read_rates() {
        const auto lr = f_.take_number({"init_learning_rate"});
        const auto piecewise = f_.take_text({"piecewise_learning_rate_schedule"});
        const auto per_decay = f_.take_number({"num_epochs_per_decay"}).value_or(0);
        const auto factor = f_.take_number({"learning_rate_decay_factor"}).value_or(0);
        const auto least = f_.take_number({"minimum_learning_rate"}).value_or(0);
        double warmup = f_.take_number({"num_learning_rate_warmup_epochs"}).value_or(0);
        std::string warmup_why = "--num_learning_rate_warmup_epochs";
        if (piecewise) {
            const PiecewiseRates rates = parse_piecewise_rates("--piecewise_learning_rate_schedule", *piecewise);
            set_rate(rates.values.front(), "--piecewise_learning_rate_schedule: its first rate");
            if (!rates.epochs.empty()) set_piecewise(rates, false, "--piecewise_learning_rate_schedule");
        } else if (lr) {
            set_rate(*lr, "--init_learning_rate");
            if (per_decay > 0 && factor > 0) set_decay(per_decay, factor, least);
        } else if (model_->lr > 0 && !(cifar_ && model_->ours == "alexnet")) {
            set_rate(model_->lr, "its default for this model");
        } else if (model_->ours == "alexnet") {
            set_rate(0.1, "its default for this model and data");
            set_decay(100, 0.1, 0);
        } else {
            set_model_rates(warmup, warmup_why);
        }
        if (warmup > 0) c_.set("schedule.warmup_epochs", warmup, warmup_why);
    }

    void set_rate(double lr, const std::string& why) { c_.set("optimizer.lr", lr, why); }

    void set_decay(double epochs, double factor, double least) {
        c_.set_text("schedule.name", "step", "falls at once every so many epochs");
        c_.set("schedule.every_epochs", epochs, "--num_epochs_per_decay");
        c_.set("schedule.factor", factor, "--learning_rate_decay_factor");
        if (least > 0)
            c_.remark(
                fmt::format("--minimum_learning_rate={}: the schedule here has no floor; end the run before", least));
    }

    void set_model_rates(double& warmup, std::string& warmup_why) {
        const bool cifar = model_->side == 32;
        const PiecewiseRates rates = cifar ? their_cifar_resnet_rates() : their_resnet50_rates(batch_);
        set_rate(rates.values.front(), cifar ? "its own for CIFAR" : "its own: .128 for a batch of 256, in proportion");
        set_piecewise(rates, true, "its own for this model");
        if (cifar) return;
        warmup = 5;
        warmup_why = "its own for this model";
    }

    void read_running() {
        if (const auto seed = f_.take_count({"tf_random_seed"}))
            c_.set("seed", *seed, "--tf_random_seed; other random numbers, of course");
        if (const auto every = f_.take_count({"display_every"}, 1)) c_.set("log.every", *every, "--display_every");
        if (const auto steps = f_.take_count({"save_model_steps"}, 1))
            c_.set("checkpoint.every_steps", *steps, "--save_model_steps");
        if (const auto keep = f_.take_count({"max_ckpts_to_keep"}, 1))
            c_.set("checkpoint.keep", *keep, "--max_ckpts_to_keep");
        if (const auto epochs = f_.take_count({"eval_during_training_every_n_epochs"}, 1))
            c_.set("eval.every_epochs", *epochs, "--eval_during_training_every_n_epochs");
        if (const auto steps = f_.take_count({"eval_during_training_every_n_steps"}, 1))
            c_.set("eval.every_steps", *steps, "--eval_during_training_every_n_steps");
        if (f_.take_switch("use_fp16").value_or(false)) {
            c_.set_text("device.arithmetic", "vendor", "--use_fp16 needs a GPU's own units");
            c_.set_text("device.precision", "fp16", "--use_fp16");
        }
        if (const auto folder = f_.take_text({"train_dir"}))
            c_.remark(fmt::format("--train_dir={}: lockstep train --out {}", *folder, *folder));
    }

    void name_what_has_no_line() {
        c_.not_needed(
            f_, {"job_name", "task_index", "ps_hosts", "controller_host", "num_intra_threads", "num_inter_threads"},
            "mpirun starts the ranks, and none is special");
        c_.not_needed(
            f_,
            {"local_parameter_device", "staged_vars", "cross_replica_sync", "sync_on_finish", "all_reduce_spec",
             "gradient_repacking", "agg_small_grads_max_bytes", "agg_small_grads_max_group", "hierarchical_copy",
             "network_topology", "compact_gradient_transfer", "variable_consistency", "horovod_device"},
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
                       "resize_method",
                       "print_training_accuracy"},
                      "a matter of speed or display");
        c_.not_needed(
            f_,
            {"summary_verbosity", "save_summaries_steps", "loss_type_to_report", "num_warmup_batches", "flush_stdout"},
            "metrics.jsonl has every step's loss and every evaluation");
        c_.not_needed(f_, {"eval_dir", "eval_interval_secs", "num_eval_batches", "num_eval_epochs"},
                      "lockstep eval sees every sample once");
        c_.cannot(f_, {"gradient_clip"},
                  "clips element by element on each GPU; optimizer.clip_norm clips the whole gradient once");
        c_.cannot(f_, {"eval", "forward_only"}, "another command: lockstep eval, lockstep predict");
        c_.cannot(f_, {"fp16_loss_scale", "fp16_enable_auto_loss_scale", "fp16_vars", "fp16_inc_loss_scale_every_n"},
                  "the loss scale follows Lockstep's own rule, and weights are fp32");
        c_.cannot(f_, {"save_model_secs"}, "the clock decides nothing here; checkpoint.every_steps does");
    }

    FlagList& f_;
    Imported& c_;
    const TfModel* model_ = nullptr;
    int64_t gpus_ = 1, workers_ = 1, batch_ = 0, samples_ = 0;
    double epochs_ = 0;
    bool cifar_ = false;
    std::string data_name_, update_;
};

}  // namespace

void import_tf_cnn_benchmarks(FlagList& flags, Imported& config) {
    TfImport(flags, config).run();
}

}  // namespace lockstep

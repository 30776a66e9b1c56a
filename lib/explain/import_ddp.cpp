// torchrun and DistributedDataParallel, with the flags of torchvision's training script and PyTorch's ImageNet example:
// the batch is a process's, gradients are averaged, and the learning rate is written for the whole.
#include "core/error.hpp"
#include "explain/config_import.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostNodes = 1'000'000;  // far beyond any
constexpr const char* kDefaultNetwork = "no --model: the default of torchvision's and PyTorch's own scripts";

class DdpImport {
  public:
    DdpImport(FlagList& flags, Imported& config) : f_(flags), c_(config) {}

    void run() {
        read_world();
        read_batch();
        read_data();
        import_parts(parts_, c_);
        read_optimizer();
        read_schedule();
        read_running();
    }

  private:
    void read_world() {
        if (f_.take_switch("multiprocessing_distributed").value_or(false)) return read_nodes();
        const FlagList::Flag* per_node = f_.take({"nproc_per_node", "nproc"});
        const int64_t nodes = f_.take_count({"nnodes"}, 1).value_or(1);
        if (per_node == nullptr) {
            fail(ErrorKind::kUsage,
                 "ddp: how many processes? Put torchrun --nproc_per_node=P (and --nnodes=M) in front, or "
                 "--multiprocessing-distributed behind PyTorch's ImageNet example");
        }
        const auto processes = f_.take_count({per_node->name}, 1);
        workers_ =
            batch_product({*processes, nodes}, fmt::format("--{}={} x --nnodes={}", per_node->name, *processes, nodes));
    }

    /// PyTorch's ImageNet example starts a process for each GPU of a node by itself, and divides a node's batch between
    /// them; its world size counts nodes.
    void read_nodes() {
        const auto launched = f_.take_count({"nnodes"}, 1).value_or(1);
        const auto world = f_.take_count({"world_size"}, -1, kMostNodes).value_or(-1);
        workers_ = world > 0 ? world : launched;
        share_ = "node";
        c_.not_needed(f_, {"nproc_per_node", "nproc"},
                      "--multiprocessing-distributed starts a process for each GPU itself");
    }

    void read_batch() {
        const bool of_node = share_ == "node";
        const auto given = f_.take_count({"batch_size"}, 1);
        const int64_t each = given.value_or(of_node ? 256 : 32);
        parts_.passes_flag = f_.name_of({"gradient_accumulation_steps", "accumulate"});
        const int64_t accumulated = f_.take_count({"gradient_accumulation_steps", "accumulate"}, 1).value_or(1);
        const std::string words =
            fmt::format("--batch-size={} is a {}'s: x {}{}", each, share_, counted(workers_, share_),
                        accumulated > 1 ? fmt::format(" x {} accumulated", accumulated) : "");
        parts_.batch = batch_product({each, workers_, accumulated}, words);
        c_.set("batch.size", parts_.batch, words);
        parts_.workers = workers_;
        parts_.who = share_;
        parts_.each = each;
        parts_.passes = accumulated;
        parts_.gpus_unknown = of_node;
        c_.set("train.epochs", f_.take_count({"epochs"}, 1).value_or(90), "--epochs: passes over the data, there too");
        if (f_.take_switch("drop_last").value_or(false)) c_.set_text("batch.last", "drop", "--drop-last");
        c_.remark(
            "DistributedSampler reads up to W - 1 samples of an epoch twice to make parts equal; here each is read "
            "once");
    }

    void read_data() {
        std::string folder = f_.take_text({"data_path", "data", "data_dir"}).value_or("");
        if (folder.empty() && !f_.positionals().empty()) folder = f_.positionals().front();
        if (const FlagList::Flag* model = f_.take({"model", "arch"})) {
            import_torchvision_model(*model, c_);
        } else if (!folder.empty() || is_known_script()) {
            import_torchvision_model({"model", "resnet18", kDefaultNetwork}, c_);
        } else {
            name_missing_model(c_);
        }
        if (f_.take_switch("sync_bn").value_or(false)) {
            parts_.own_norm = false;
            c_.set_text("batch_norm.scope", "global", "--sync-bn: statistics of the whole batch, there too");
        }
        const int64_t side = f_.take_count({"train_crop_size"}, 1).value_or(224);
        if (folder.empty()) {
            c_.set_text("data.format", "synthetic", "no folder of data is named: made-up data, to try the settings");
        } else {
            import_image_folders(folder + "/train", folder + "/val", side, c_);
        }
        read_evaluation(!folder.empty(), side);
        if (const auto smooth = f_.take_number({"label_smoothing"}, 0); smooth && *smooth > 0) {
            c_.set("train.label_smoothing", *smooth, "--label-smoothing");
        }
    }

    /// Flags that torchvision's script or PyTorch's ImageNet example has, and few others.
    bool is_known_script() const {
        return !f_.name_of({"multiprocessing_distributed",
                            "dist_url",
                            "dist_backend",
                            "data_path",
                            "lr_scheduler",
                            "lr_step_size",
                            "lr_gamma",
                            "lr_min",
                            "lr_warmup_epochs",
                            "lr_warmup_method",
                            "lr_warmup_decay",
                            "norm_weight_decay",
                            "train_crop_size",
                            "val_crop_size",
                            "val_resize_size",
                            "mixup_alpha",
                            "cutmix_alpha",
                            "auto_augment",
                            "random_erase",
                            "ra_sampler",
                            "model_ema",
                            "sync_bn",
                            "cache_dataset",
                            "test_only",
                            "print_freq"})
                    .empty();
    }

    void read_evaluation(bool pictures, int64_t side) {
        if (!pictures) return c_.not_needed(f_, {"val_resize_size", "val_crop_size"}, "made-up data have one size");
        std::string flags;
        for (const char* name : {"val_resize_size", "val_crop_size"}) {
            if (const FlagList::Flag* flag = f_.take({name}))
                flags.append(flags.empty() ? "" : ", ").append(flag->spelled);
        }
        name_center_crop(flags, side, c_);
    }

    void read_optimizer() {
        const std::string name = f_.take_text({"opt", "optimizer"}).value_or("sgd");
        const double momentum = f_.take_number({"momentum"}).value_or(0.9);
        if (name == "sgd") {
            c_.set_text("optimizer.name", momentum == 0 ? "sgd" : "momentum", "--opt sgd, the scripts' default");
        } else if (name == "sgd_nesterov") {
            c_.set_text("optimizer.name", "nesterov", "--opt sgd_nesterov");
        } else if (name == "adam" || name == "adamw" || name == "rmsprop" || name == "adagrad") {
            c_.set_text("optimizer.name", name, "--opt " + name);
            if (name == "rmsprop") {
                c_.set("optimizer.rho", 0.9, "torchvision's alpha");
                c_.set("optimizer.rmsprop_momentum", momentum, "--momentum: of the step");
                c_.set("optimizer.epsilon", 0.0316, "torchvision's, beside the root");
            }
        } else {
            fail(ErrorKind::kUsage,
                 "--opt {}: Lockstep has sgd, sgd_nesterov, adam, adamw, rmsprop and adagrad of PyTorch's", name);
        }
        if (name.starts_with("sgd") && momentum != 0) c_.set("optimizer.momentum", momentum, "--momentum");
        lr_ = f_.take_number({"lr", "learning_rate"}).value_or(0.1);
        c_.set("optimizer.lr", lr_,
               fmt::format("--lr: DDP averages and does not scale it; for {} samples",
                           workers_ == 1 ? "these" : "all processes'"));
        const double decay = f_.take_number({"weight_decay", "wd"}, 0).value_or(1e-4);
        if (decay > 0) {
            c_.set("optimizer.weight_decay", decay,
                   name == "adamw" ? "--weight-decay: of the weights themselves, as PyTorch's AdamW does"
                                   : "--weight-decay: added to the mean gradient, as PyTorch does");
        }
        if (const auto norm = f_.take_number({"norm_weight_decay"})) {
            if (*norm == 0) {
                c_.set_text("optimizer.decay", "weights",
                            "--norm-weight-decay 0: not of batch norm (nor of biases, here)");
            } else {
                c_.refuse(
                    fmt::format("--norm-weight-decay {}: batch norm decays as the rest does, or not at all", *norm));
            }
        }
        if (const auto clip = f_.take_number({"clip_grad_norm"}, 0); clip && *clip > 0) {
            c_.set("optimizer.clip_norm", *clip, "--clip-grad-norm: of the mean gradient, there too");
        }
    }

    void read_schedule() {
        const std::string name = f_.take_text({"lr_scheduler"}).value_or("steplr");
        const double every = f_.take_number({"lr_step_size"}).value_or(30);
        const double gamma = f_.take_number({"lr_gamma"}).value_or(0.1);
        const double least = f_.take_number({"lr_min"}).value_or(0);
        if (name == "steplr") {
            c_.set_text("schedule.name", "step", "--lr-scheduler steplr, the scripts' default");
            c_.set("schedule.every_epochs", every, "--lr-step-size");
            c_.set("schedule.factor", gamma, "--lr-gamma");
        } else if (name == "cosineannealinglr") {
            c_.set_text("schedule.name", "cosine", "--lr-scheduler; theirs moves once an epoch, this one every update");
            c_.set("schedule.end", least, "--lr-min");
        } else if (name == "exponentiallr") {
            c_.set_text("schedule.name", "exponential", "--lr-scheduler exponentiallr");
            c_.set("schedule.rate", gamma, "--lr-gamma");
            c_.set("schedule.every_epochs", 1.0, "falls once an epoch there");
            c_.set("schedule.staircase", "true", "falls once an epoch there");
        } else {
            fail(ErrorKind::kUsage, "--lr-scheduler {}: it is steplr, cosineannealinglr or exponentiallr", name);
        }
        const auto warmup = f_.take_number({"lr_warmup_epochs", "warmup_epochs"}, 0).value_or(0);
        if (warmup > 0) c_.set("schedule.warmup_epochs", warmup, "--lr-warmup-epochs: from 0 up, at every update");
        c_.not_needed(f_, {"lr_warmup_method", "lr_warmup_decay"}, "the warm-up here is linear, from 0");
    }

    void read_running() {
        c_.set_counts(f_, {{{"seed"}, "seed", kOtherNumbers, 0}, {{"print_freq"}, "log.every"}});
        if (const auto folder = f_.take_text({"output_dir"}))
            c_.remark(fmt::format("--output-dir {}: lockstep train --out {}", *folder, *folder));
        if (f_.take_switch("amp").value_or(false)) {
            c_.set_text("device.arithmetic", "vendor", "--amp needs a GPU's own units");
            c_.set_text("device.precision", "fp16", "--amp");
            c_.change(fp16_words("--amp"));
        }
        c_.not_needed(f_,
                      {"workers", "device", "dist_url", "dist_backend", "rank", "gpu", "use_deterministic_algorithms",
                       "cache_dataset", "local_rank", "use_env"},
                      "a matter of the machine; it changes no bit here");
        if (share_ != "node") c_.not_needed(f_, {"world_size"}, "torchrun's numbers of processes count, there too");
        c_.not_needed(f_, {"resume", "start_epoch"}, "lockstep train --resume");
        c_.cannot(f_, {"test_only", "evaluate"}, "another command: lockstep eval");
        c_.cannot(f_, {"mixup_alpha", "cutmix_alpha", "auto_augment", "random_erase", "ra_sampler", "model_ema"},
                  "there is no such thing in [augment] or [train]");
        c_.cannot(f_, {"pretrained", "weights"}, "model.weights takes a safetensors file of PyTorch's names");
    }

    FlagList& f_;
    Imported& c_;
    int64_t workers_ = 1;
    std::string share_ = "process";  // what --batch-size is of, and workers_ counts
    BatchParts parts_;
    double lr_ = 0.1;
};

}  // namespace

void import_ddp(FlagList& flags, Imported& config) {
    DdpImport(flags, config).run();
}

}  // namespace lockstep

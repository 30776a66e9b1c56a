// torchrun and DistributedDataParallel, with the flags of torchvision's training script and PyTorch's ImageNet example:
// the batch is a process's, gradients are averaged, and the learning rate is written for the whole.
#include "explain/import_ddp.hpp"

#include "core/error.hpp"
#include "explain/launch.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostNodes = 1'000'000;  // far beyond any
constexpr const char* kDefaultNetwork = "no --model: the default of torchvision's and PyTorch's own scripts";

class DdpImport {
  public:
    DdpImport(CommandLine& line, Imported& config) : line_(line), f_(line.flags), c_(config) {}

    void run() {
        read_world();
        read_batch();
        read_data();
        import_parts(parts_, c_);
        const double lr = import_ddp_optimizer(f_, c_, workers_ == 1 ? "these" : "all processes'");
        import_ddp_rates(f_, c_, lr, epochs_);
        read_running();
        read_precision();
    }

  private:
    void read_world() {
        const Launch launch = read_launch(line_);
        if (f_.take_switch("multiprocessing_distributed").value_or(false)) return read_nodes(launch);
        const auto world = f_.take_count({"world_size"}, -1, kMostNodes).value_or(-1);
        if (launch.processes) {
            workers_ = *launch.processes;
            if (world > 0)
                c_.remark(fmt::format("--world-size {}: {} says how many processes there are, there too", world,
                                      launch.launcher));
        } else if (!launch.missing.empty()) {
            fail(ErrorKind::kUsage, "ddp: how many processes? Write {}", launch.missing);
        } else if (world > 0) {
            workers_ = world;  // each is started by hand
            c_.remark(fmt::format("--world-size {}: as many processes, each started by hand", world));
        } else if (!line_.script.empty()) {
            c_.change(
                fmt::format("{}: no launcher stands in front, so this is one process, and --batch-size is the whole "
                            "batch; with torchrun --nproc_per_node=P it is a process's",
                            line_.script_name()));
        } else {
            fail(
                ErrorKind::kUsage,
                "ddp: how many processes? Put torchrun --nproc_per_node=P (and --nnodes=M) and the script in front, or "
                "--multiprocessing-distributed behind PyTorch's ImageNet example");
        }
    }

    /// PyTorch's ImageNet example starts a process for each GPU of a node by itself, and divides a node's batch between
    /// them; its world size counts nodes.
    void read_nodes(const Launch& launch) {
        const auto world = f_.take_count({"world_size"}, -1, kMostNodes).value_or(-1);
        workers_ = world > 0 ? world : launch.nodes.value_or(1);
        share_ = "node";
    }

    /// PyTorch's, whose batch is 256 and not 32 if none is given.
    bool is_imagenet_example() const {
        return share_ == "node" || line_.script_name() == "main.py" || f_.has({"arch", "dist_backend", "dummy"});
    }

    void read_batch() {
        const bool of_node = share_ == "node";
        const auto given = f_.take_count({"batch_size"}, 1);
        const int64_t each = given.value_or(is_imagenet_example() ? 256 : 32);
        const std::initializer_list<std::string_view> accumulate = {"gradient_accumulation_steps", "accumulate"};
        FlagList* const accelerate = line_.flags_of(LauncherKind::kAccelerate);
        FlagList& from = !f_.has(accumulate) && accelerate != nullptr ? *accelerate : f_;
        parts_.passes_flag = from.name_of(accumulate);
        const int64_t accumulated = from.take_count(accumulate, 1).value_or(1);
        const std::string words = fmt::format("{}{} is a {}'s: x {}{}", given ? "--batch-size=" : "its default of ",
                                              each, share_, counted(workers_, share_),
                                              accumulated > 1 ? fmt::format(" x {} accumulated", accumulated) : "");
        parts_.batch = batch_product({each, workers_, accumulated}, words);
        c_.set("batch.size", parts_.batch, words);
        parts_.workers = workers_;
        parts_.who = share_;
        parts_.each = each;
        parts_.passes = accumulated;
        parts_.gpus_unknown = of_node;
        const auto epochs = f_.take_count({"epochs", "num_epochs"}, 1);
        epochs_ = epochs.value_or(90);
        c_.set("train.epochs", epochs_,
               epochs ? "--epochs: passes over the data, there too" : "no --epochs: the default of the scripts");
        if (f_.take_switch("drop_last").value_or(false)) c_.set_text("batch.last", "drop", "--drop-last");
        c_.remark(
            "DistributedSampler reads up to W - 1 samples of an epoch twice to make parts equal; here each is read "
            "once");
    }

    void read_data() {
        std::string folder = f_.take_text({"data_path", "data", "data_dir"}).value_or("");
        if (folder.empty()) folder = f_.take_positional().value_or("");
        while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
        const bool dummy = f_.take_switch("dummy").value_or(false);
        if (dummy) folder.clear();
        bool pictures = true;
        if (const FlagList::Flag* model = f_.take_valued({"model", "arch"})) {
            import_torchvision_model(*model, c_);
        } else if (!folder.empty() || dummy || is_known_script()) {
            import_torchvision_model({"model", "resnet18", kDefaultNetwork}, c_);
        } else {
            name_missing_model(c_);
            pictures = false;
        }
        if (f_.take_switch("sync_bn").value_or(false)) {
            parts_.own_norm = false;
            c_.set_text("batch_norm.scope", "global", "--sync-bn: statistics of the whole batch, there too");
        }
        const int64_t side = f_.take_count({"train_crop_size"}, 1).value_or(224);
        if (dummy) {
            import_made_up_pictures(side, "--dummy", c_);
            c_.set("data.samples", kImageNetSamples, "--dummy: as many as ImageNet has");
            c_.set("data.test_samples", kImageNetTestSamples, "--dummy: as many as ImageNet has");
        } else if (folder.empty() && pictures) {
            import_made_up_pictures(side, "no folder of data is named: made-up data, to try the settings", c_);
        } else if (folder.empty()) {
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
                    .empty() ||
               is_imagenet_example();
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

    void read_running() {
        c_.set_counts(f_, {{{"seed"}, "seed", kOtherNumbers, 0}, {{"print_freq"}, "log.every"}});
        if (const FlagList::Flag* folder = f_.take({"output_dir"}); folder != nullptr && !folder->value.empty())
            c_.remark(fmt::format("{}: lockstep train --out {}", folder->spelled, folder->value));
        c_.not_needed(f_,
                      {"workers", "device", "dist_url", "dist_backend", "rank", "gpu", "use_deterministic_algorithms",
                       "cache_dataset", "local_rank", "use_env", "no_accel", "use_v2", "backend", "nproc_per_node",
                       "nnodes", "dist_on_itp"},
                      "a matter of the machine; it changes no bit here");
        c_.not_needed(f_, {"resume", "start_epoch"}, "lockstep train --resume");
        c_.not_needed(f_, {"ra_reps", "ra_magnitude", "augmix_severity", "model_ema_steps", "model_ema_decay"},
                      "a part of what is named above, or without it of nothing");
        c_.cannot(f_, {"test_only", "evaluate"}, "another command: lockstep eval");
        c_.cannot(f_, {"mixup_alpha", "cutmix_alpha", "auto_augment", "random_erase", "ra_sampler", "model_ema"},
                  "there is no such thing in [augment] or [train]");
        c_.cannot(f_, {"pretrained", "weights"}, "model.weights takes a safetensors file of PyTorch's names");
        c_.cannot(f_, {"deepspeed", "deepspeed_config", "deepspeed_scale"},
                  "its file may hold another batch, optimizer, precision and schedule: write those here");
        if (f_.has({"interpolation"})) {
            if (const std::string how = *f_.take_text({"interpolation"}); how != "bilinear")
                c_.refuse(fmt::format("--interpolation {}: pictures are resized bilinearly here", how));
        }
    }

    /// Half precision of the script, or of accelerate's.
    void read_precision() {
        FlagList* const accelerate = line_.flags_of(LauncherKind::kAccelerate);
        const FlagList::Flag* mixed = accelerate != nullptr ? accelerate->take_valued({"mixed_precision"}) : nullptr;
        const bool own = f_.has({"mixed_precision"});
        if (own) mixed = f_.take_valued({"mixed_precision"});
        std::string flag, precision = "fp16";
        for (const char* name : {"amp", "apex", "fp16"}) {
            if (f_.take_switch(name).value_or(false)) flag = fmt::format("--{}", name);
        }
        if (mixed != nullptr && mixed->value != "no") {
            flag = mixed->spelled;
            precision = mixed->value;
        }
        c_.cannot(f_, {"loss_scale", "apex_opt_level", "opt_level"}, "the loss scale follows Lockstep's own rule");
        if (flag.empty()) return;
        if (precision != "fp16" && precision != "bf16")
            return c_.refuse(fmt::format("{}: it is fp32, fp16 or bf16 here", flag));
        c_.set_text("device.arithmetic", "vendor", flag + " needs a GPU's own units");
        c_.set_text("device.precision", precision, flag);
        c_.change(half_words(flag, precision));
    }

    CommandLine& line_;
    FlagList& f_;
    Imported& c_;
    int64_t workers_ = 1, epochs_ = 90;
    std::string share_ = "process";  // what --batch-size is of, and workers_ counts
    BatchParts parts_;
};

}  // namespace

void import_ddp(CommandLine& line, Imported& config) {
    DdpImport(line, config).run();
}

}  // namespace lockstep

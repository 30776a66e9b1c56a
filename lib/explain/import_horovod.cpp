// Horovod's conventions, as its example scripts have them: the batch is a worker's, the learning rate is one worker's
// and multiplied by their number, with a warm-up to get there. What trains is a batch of all workers.
#include "core/error.hpp"
#include "explain/config_import.hpp"

namespace lockstep {
namespace {

class HorovodImport {
  public:
    HorovodImport(FlagList& flags, Imported& config) : f_(flags), c_(config) {}

    void run() {
        workers_ = f_.take_count({"np", "num_proc", "n"}, 1).value_or(0);
        if (workers_ == 0) {
            fail(ErrorKind::kUsage, "horovod: how many workers? Put horovodrun -np W (or mpirun -np W) in front");
        }
        read_batch();
        read_data();
        import_parts(parts_, c_);
        read_rates();
        read_running();
    }

  private:
    void read_batch() {
        const int64_t given = f_.take_count({"batch_size"}, 1).value_or(32);
        const int64_t per_reduce = f_.take_count({"batches_per_allreduce"}, 1).value_or(1);
        const std::string words =
            fmt::format("--batch-size={} is a worker's: x {}{}", given, counted(workers_, "worker"),
                        per_reduce > 1 ? fmt::format(" x {} batches per all-reduce", per_reduce) : "");
        c_.set("batch.size", batch_product({given, workers_, per_reduce}, words), words);
        factor_ = static_cast<double>(workers_ * per_reduce);
        parts_ = {.workers = workers_,
                  .who = "worker",
                  .batch = given * workers_ * per_reduce,
                  .each = given,
                  .passes = per_reduce,
                  .passes_flag = "--batches-per-allreduce"};
        const int64_t epochs = f_.take_count({"epochs", "num_epochs"}, 1).value_or(90);
        c_.set("train.epochs", epochs, "passes over the data: a worker's epoch there is 1/W of them");
        c_.remark(
            "scripts that divide epochs or steps by hvd.size() name what one worker alone would do: write that here");
    }

    void read_data() {
        if (const FlagList::Flag* model = f_.take({"model", "arch"})) {
            import_torchvision_model(*model, c_);
        } else if (!f_.name_of({"train_dir", "val_dir"}).empty()) {
            import_torchvision_model({"model", "resnet50", "the ImageNet example's network"}, c_);
        } else {
            name_missing_model(c_);
        }
        const auto train = f_.take_text({"train_dir"});
        const auto test = f_.take_text({"val_dir"});
        if (train || test) {
            import_image_folders(train.value_or("train"), test.value_or("val"), 224, c_);
            name_center_crop("", 224, c_);
            return;
        }
        c_.set_text("data.format", "synthetic", "no --train-dir: made-up data, to try the settings");
    }

    void read_rates() {
        const std::string name = f_.name_of({"base_lr", "lr", "learning_rate"});
        const auto base = f_.take_number({"base_lr", "lr", "learning_rate"});
        const bool adasum = f_.take_switch("use_adasum").value_or(false);
        const double lr = base.value_or(0.0125);
        c_.set_text("optimizer.name", "momentum", "the examples' SGD");
        c_.set(
            "optimizer.lr", lr * factor_,
            fmt::format("{}={} x {}: the examples scale it with the workers", base ? name : "--base-lr", lr, factor_));
        c_.set("optimizer.momentum", f_.take_number({"momentum"}).value_or(0.9), "--momentum");
        const double decay = f_.take_number({"wd", "weight_decay"}, 0).value_or(5e-5);
        if (decay > 0) c_.set("optimizer.weight_decay", decay, "--wd: added to the mean gradient, as PyTorch does");
        const double warmup = f_.take_number({"warmup_epochs"}, 0).value_or(5);
        if (warmup > 0) {
            c_.set("schedule.warmup_epochs", warmup, "--warmup-epochs; theirs begins at --base-lr, this one at 0");
        }
        if (c_.has("data.format", "image_folder")) {
            c_.set_text("schedule.name", "piecewise", "the ImageNet example's");
            c_.set("schedule.boundaries", "[30.0, 60.0, 80.0]", "the ImageNet example's epochs");
            c_.set("schedule.values",
                   toml_list({lr * factor_, lr * factor_ * 0.1, lr * factor_ * 0.01, lr * factor_ * 0.001}),
                   "a tenth each time");
        }
        if (adasum) c_.refuse("--use-adasum: no mean of gradients; the mean is what stands here");
        c_.cannot(f_, {"gradient_predivide_factor"}, "the sum is divided once");
        c_.cannot(f_, {"fp16_allreduce"}, "sums are fp32");
    }

    void read_running() {
        c_.set_counts(f_, {{{"seed"}, "seed", kOtherNumbers, 0}, {{"log_interval"}, "log.every"}});
        if (f_.take({"checkpoint_format"}) != nullptr)
            c_.set("checkpoint.every_epochs", int64_t{1}, "--checkpoint-format: every epoch there");
        c_.not_needed(f_, {"no_cuda", "log_dir", "val_batch_size", "test_batch_size", "num_threads", "gloo", "mpi"},
                      "a matter of speed or display");
    }

    FlagList& f_;
    Imported& c_;
    int64_t workers_ = 0;
    BatchParts parts_;
    double factor_ = 1;
};

}  // namespace

void import_horovod(FlagList& flags, Imported& config) {
    HorovodImport(flags, config).run();
}

}  // namespace lockstep

// Horovod's conventions, as its example scripts have them: the batch is a worker's, the learning rate is one worker's
// and multiplied by their number, with a warm-up to get there. What trains is a batch of all workers.
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "explain/config_import.hpp"
#include "explain/horovod_scripts.hpp"
#include "explain/launch.hpp"
#include "explain/their_schedule.hpp"

namespace lockstep {
namespace {

class HorovodImport {
  public:
    HorovodImport(CommandLine& line, Imported& config) : line_(line), f_(line.flags), c_(config) {}

    void run() {
        recognise();
        read_workers();
        read_batch();
        read_length();
        read_data();
        import_parts(parts_, c_);
        read_rates();
        read_schedule();
        read_running();
    }

  private:
    void recognise() {
        script_ = horovod_script(line_.script_name());
        if (!script_.name.empty()) {
            source_ = line_.script_name();
        } else if (f_.has({"train_dir", "val_dir", "base_lr", "wd", "batches_per_allreduce", "checkpoint_format"})) {
            script_ = horovod_imagenet();
            source_ = "the ImageNet example";
            if (f_.has({"train_dir", "val_dir"})) return;
            script_.data = HorovodData::kUnknown;  // another script, with its flags
            script_.network = {};
            script_.falls = false;
        }
    }

    /// The examples can also start their workers themselves: --num-proc.
    void read_workers() {
        const Launch launch = read_launch(line_);
        const auto own = f_.take_count({"num_proc"}, 1);
        if (!launch.missing.empty() && !own)
            fail(ErrorKind::kUsage, "horovod: how many workers? Write {}", launch.missing);
        workers_ = launch.processes ? *launch.processes : own.value_or(0);
        if (workers_ == 0) {
            fail(ErrorKind::kUsage, "horovod: how many workers? Put horovodrun -np W (or mpirun -np W) in front");
        }
        c_.not_needed(f_, {"hosts", "communication"}, "mpirun starts the ranks");
    }

    /// What stands behind a value that nobody gave.
    std::string default_words(std::string_view flag) const {
        return script_.name.empty() ? fmt::format("no {}: a guess, write yours", flag)
                                    : fmt::format("no {}: as {} has it", flag, source_);
    }

    void read_batch() {
        const auto given = f_.take_count({"batch_size"}, 1);
        const int64_t each = given.value_or(script_.batch);
        batch_given_ = given.has_value();
        const int64_t per_reduce = f_.take_count({"batches_per_allreduce", "backward_passes_per_step"}, 1).value_or(1);
        const std::string words = fmt::format(
            "{}{} is a worker's: x {}{}", given ? "--batch-size=" : "its default of ", each,
            counted(workers_, "worker"), per_reduce > 1 ? fmt::format(" x {} batches per all-reduce", per_reduce) : "");
        batch_ = batch_product({each, workers_, per_reduce}, words);
        c_.set("batch.size", batch_, words);
        passes_ = per_reduce;
        parts_ = {.workers = workers_,
                  .who = "worker",
                  .batch = batch_,
                  .each = each,
                  .passes = per_reduce,
                  .passes_flag = "--batches-per-allreduce"};
    }

    void read_length() {
        const std::string steps_name = f_.name_of({"steps", "num_steps", "train_steps", "max_steps"});
        const auto steps = f_.take_count({"steps", "num_steps", "train_steps", "max_steps"}, 1);
        const std::string epochs_name = f_.name_of({"epochs", "num_epochs"});
        const auto epochs = f_.take_count({"epochs", "num_epochs"}, 1);
        const std::string each_name = f_.name_of({"steps_per_epoch"});
        const auto each = f_.take_count({"steps_per_epoch"}, 1);
        const auto iterations = f_.take_count({"num_iters"}, 1);
        const auto per_iteration = f_.take_count({"num_batches_per_iter"}, 1);
        const auto warmups = f_.take_count({"num_warmup_batches"}, 0);
        epochs_ = epochs.value_or(script_.epochs);
        if (steps) {
            c_.set("train.steps", *steps, steps_name + ": updates of all workers together");
            if (epochs)
                c_.change(
                    fmt::format("{} {} with {} {}: the steps are kept", epochs_name, *epochs, steps_name, *steps));
        } else if (each) {
            const std::string words = fmt::format("{} {} x {} epochs", each_name, *each, epochs_);
            int64_t all = 0;
            if (__builtin_mul_overflow(*each, std::max<int64_t>(1, epochs_), &all))
                fail(ErrorKind::kUsage, "{}: beyond 64 bits", words);
            c_.set("train.steps", all, words + ": updates of all workers together");
        } else if (script_.data == HorovodData::kMadeUp) {
            const int64_t all = batch_product({iterations.value_or(10), per_iteration.value_or(10)},
                                              "--num-iters x --num-batches-per-iter") +
                                warmups.value_or(10);
            c_.set("train.steps", all, "--num-warmup-batches + --num-iters x --num-batches-per-iter");
        } else if (!epochs && script_.steps > 0) {
            c_.set("train.steps", script_.rounds * std::max<int64_t>(1, script_.steps / workers_),
                   fmt::format("{}: {}{} // {}", source_,
                               script_.rounds > 1 ? fmt::format("{} epochs of ", script_.rounds) : "", script_.steps,
                               counted(workers_, "worker")));
        } else {
            c_.set("train.epochs", epochs_,
                   epochs ? "passes over the data: a worker's epoch there is 1/W of them" : default_words("--epochs"));
        }
        name_guesses(epochs || steps || each);
        if (script_.name.empty()) {
            c_.remark(
                "scripts that divide epochs or steps by hvd.size() name what one worker alone would do: write that "
                "here");
        }
    }

    /// What an unknown script has of its own, and nobody wrote.
    void name_guesses(bool has_length) {
        if (!script_.name.empty()) return;
        std::string missing;
        const auto add = [&](const char* flag) { missing.append(missing.empty() ? "" : ", ").append(flag); };
        if (!batch_given_) add("--batch-size");
        if (!has_length) add("--epochs");
        if (!f_.has({"base_lr", "lr", "learning_rate"})) add("--lr");
        if (!missing.empty())
            c_.change(fmt::format("no {}: what stands in its place is a guess, not your script's", missing));
    }

    void read_data() {
        read_model();
        const auto train = f_.take_text({"train_dir"});
        const auto test = f_.take_text({"val_dir"});
        const auto folder = f_.take_text({"data_dir"});
        if (train || test || script_.data == HorovodData::kImageNet) {
            if (train || test) {
                import_image_folders(train.value_or("~/imagenet/train"), test.value_or("~/imagenet/validation"), 224,
                                     c_);
                name_center_crop("", 224, c_);
            } else {
                import_made_up_pictures(224, "no --train-dir: made-up data, to try the settings", c_);
            }
            return;
        }
        if (script_.data == HorovodData::kMnist) return read_mnist(folder);
        if (script_.data == HorovodData::kCifar) {
            c_.set_text("data.format", "cifar",
                        "the binary version of CIFAR-10; the script downloads Python's to ./data");
            c_.set_text("data.train", "data/cifar-10-batches-bin/data_batch_*.bin",
                        "unpack cifar-10-binary.tar.gz in data");
            c_.set_text("data.test", "data/cifar-10-batches-bin/test_batch.bin",
                        "unpack cifar-10-binary.tar.gz in data");
            c_.set("data.mean", "[0.4914, 0.4822, 0.4465]", "the script's");
            c_.set("data.std", "[0.2023, 0.1994, 0.2010]", "the script's");
            c_.set("augment.pad_crop", int64_t{4}, "RandomCrop(32, padding=4)");
            c_.set("augment.flip", "true", "RandomHorizontalFlip");
            return;
        }
        if (script_.data == HorovodData::kMadeUp) return import_made_up_pictures(224, "made-up data, there too", c_);
        if (has_pictures_) return import_made_up_pictures(224, "no --train-dir: made-up data, to try the settings", c_);
        c_.set_text("data.format", "synthetic", "no --train-dir: made-up data, to try the settings");
        if (folder) c_.change(fmt::format("--data-dir {}: of which format? Write [data]", *folder));
    }

    void read_model() {
        if (const FlagList::Flag* model = f_.take_valued({"model", "arch"})) {
            FlagList::Flag plain = *model;
            plain.value = lower_case(plain.value);  // Keras's ResNet50
            import_torchvision_model(plain, c_);
            has_pictures_ = true;
        } else if (!script_.network.empty()) {
            import_torchvision_model({"model", std::string(script_.network), fmt::format("{}'s network", source_)}, c_);
            has_pictures_ = true;
        } else if (!script_.layers.empty()) {
            c_.set_text("model.name", "custom", fmt::format("{}'s network", source_));
            c_.set("model.layers", std::string(script_.layers), "its layers; their initial weights are Lockstep's");
        } else {
            name_missing_model(c_);
        }
        if (script_.keras && script_.data == HorovodData::kImageNet) {
            c_.change(
                "Keras's ResNet-50: with biases, other paddings, pixels and augmentation there; torchvision's here");
        }
    }

    /// torchvision keeps the files in MNIST/raw below --data-dir; Keras and MXNet have copies of their own.
    void read_mnist(const std::optional<std::string>& folder) {
        const std::string raw = folder.value_or("data") + (source_.starts_with("pytorch") ? "/MNIST/raw" : "");
        const auto split = [&](std::string_view name) {
            return fmt::format("{{ images = {}, labels = {} }}",
                               toml_quoted(fmt::format("{}/{}-images-idx3-ubyte", raw, name)),
                               toml_quoted(fmt::format("{}/{}-labels-idx1-ubyte", raw, name)));
        };
        c_.set_text("data.format", "idx", "the script downloads MNIST; here its files are named, unpacked or with .gz");
        c_.set("data.train", split("train"), "training pictures");
        c_.set("data.test", split("t10k"), "seen whole, each sample once");
        if (!source_.starts_with("pytorch")) return;
        c_.set("data.mean", "[0.1307]", "the script's");
        c_.set("data.std", "[0.3081]", "the script's");
    }

    void read_rates() {
        const std::string name = f_.name_of({"base_lr", "lr", "learning_rate"});
        const auto base = f_.take_number({"base_lr", "lr", "learning_rate"});
        const bool adasum = f_.take_switch("use_adasum").value_or(false);
        const double factor = adasum || !script_.scales_lr ? 1 : static_cast<double>(workers_ * passes_);
        const double each = base.value_or(script_.lr);
        lr_ = each * factor;
        const std::string optimizer = f_.take_text({"optimizer", "opt"}).value_or(std::string(script_.optimizer));
        const std::string momentum_name = f_.name_of({"momentum"});
        const double momentum = f_.take_number({"momentum"}).value_or(script_.momentum);
        const bool sgd = optimizer == "sgd" || optimizer == "momentum";
        if (!sgd && optimizer != "adam" && optimizer != "adamw" && optimizer != "rmsprop" && optimizer != "adagrad")
            fail(ErrorKind::kUsage, "--optimizer {}: Lockstep has sgd, adam, adamw, rmsprop and adagrad", optimizer);
        const bool plain = sgd && (momentum == 0 || (script_.optimizer == "sgd" && momentum_name.empty()));
        c_.set_text("optimizer.name",
                    !sgd    ? optimizer
                    : plain ? "sgd"
                            : "momentum",
                    script_.name.empty() ? "the examples' SGD" : fmt::format("{}'s", source_));
        const std::string why = fmt::format("{}={}", base ? name : "--base-lr", each);
        c_.set("optimizer.lr", lr_,
               factor == 1 ? (base ? why : default_words("--lr"))
                           : fmt::format("{} x {}: the examples scale it with the workers", why, factor));
        if (sgd && !plain)
            c_.set("optimizer.momentum", momentum, momentum_name.empty() ? default_words("--momentum") : "--momentum");
        if (optimizer == "adam" && script_.keras) c_.set("optimizer.epsilon", 1e-7, "Keras's");
        const std::string decay_name = f_.name_of({"wd", "weight_decay"});
        const double decay = f_.take_number({"wd", "weight_decay"}, 0).value_or(script_.decay);
        const std::string decay_words = decay_name.empty() ? default_words("--wd") : decay_name;
        if (decay > 0 && script_.keras) {
            c_.set("optimizer.l2", 2 * decay, decay_words + ": Keras adds it times the sum of squares to the loss");
            c_.set_text("optimizer.decay", "weights", "of kernels alone");
        } else if (decay > 0) {
            c_.set("optimizer.weight_decay", decay, decay_words + ": added to the mean gradient, as PyTorch does");
        }
        if (adasum)
            c_.refuse("--use-adasum: no mean of gradients; the mean is what stands here, at the rate of one worker");
        c_.cannot(f_, {"gradient_predivide_factor"}, "the sum is divided once");
        c_.cannot(f_, {"fp16_allreduce"}, "sums are fp32");
    }

    void read_schedule() {
        const std::string warmup_name = f_.name_of({"warmup_epochs"});
        // An epoch of theirs is a whole number of steps of each worker.
        const double whole = script_.steps >= workers_ ? static_cast<double>(script_.steps / workers_ * workers_) /
                                                             static_cast<double>(script_.steps)
                                                       : 1;
        const double warmup = f_.take_number({"warmup_epochs"}, 0).value_or(script_.warmup * whole);
        // From lr to lr x W: of one worker there is none.
        if (warmup > 0 && workers_ > 1) {
            c_.set("schedule.warmup_epochs", warmup,
                   warmup_name.empty() ? default_words("--warmup-epochs") : warmup_name);
            c_.change(fmt::format("warm-up of {} epochs: from 1/{} of the rate there, from 0 here", warmup, workers_));
        } else if (warmup > 0 && !warmup_name.empty()) {
            c_.remark(fmt::format("{} {}: one worker has its rate from the start, there too", warmup_name, warmup));
        }
        if (script_.falls) {
            c_.set_text("schedule.name", "piecewise", fmt::format("{}'s", source_));
            c_.set("schedule.boundaries", "[30.0, 60.0, 80.0]", "epochs from the start, warm-up or not");
            c_.set("schedule.values", toml_list({lr_, lr_ * 0.1, lr_ * 0.01, lr_ * 0.001}), "a tenth each time");
        }
        if (script_.cosine_epochs > 0) {
            const auto length = static_cast<double>(script_.cosine_epochs);
            const PiecewiseRates rates = pieces_by_epoch(std::min<int64_t>(epochs_, kMostRates), [&](int64_t epoch) {
                return lr_ * (1 + std::cos(std::numbers::pi * static_cast<double>(epoch) / length)) / 2;
            });
            if (rates.epochs.empty()) return;
            c_.set_text("schedule.name", "piecewise",
                        fmt::format("{}'s cosine of {} epochs, set once an epoch", source_, script_.cosine_epochs));
            c_.set("schedule.boundaries", toml_list(rates.epochs), "epochs");
            c_.set("schedule.values", toml_list(rates.values), "a rate each");
        }
    }

    void read_running() {
        c_.set_counts(f_, {{{"seed"}, "seed", kOtherNumbers, 0}, {{"log_interval"}, "log.every"}});
        if (f_.take({"checkpoint_format"}) != nullptr)
            c_.set("checkpoint.every_epochs", int64_t{1}, "--checkpoint-format: every epoch there");
        c_.not_needed(
            f_, {"no_cuda", "log_dir", "val_batch_size", "test_batch_size", "num_threads", "gloo", "mpi", "dtype"},
            "a matter of speed or display");
        for (const char* name : {"use_mixed_precision", "use_amp"}) {
            if (!f_.take_switch(name).value_or(false)) continue;
            c_.set_text("device.arithmetic", "vendor", fmt::format("--{} needs a GPU's own units", name));
            c_.set_text("device.precision", "fp16", fmt::format("--{}", name));
            c_.change(half_words(fmt::format("--{}", name), "fp16"));
        }
    }

    static constexpr int64_t kMostRates = 1000;

    CommandLine& line_;
    FlagList& f_;
    Imported& c_;
    HorovodScript script_;
    std::string source_;  // whose defaults those of script_ are
    int64_t workers_ = 0, passes_ = 1, batch_ = 0, epochs_ = 0;
    BatchParts parts_;
    bool has_pictures_ = false, batch_given_ = false;
    double lr_ = 0;
};

}  // namespace

void import_horovod(CommandLine& line, Imported& config) {
    HorovodImport(line, config).run();
}

}  // namespace lockstep

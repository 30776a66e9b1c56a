// tf.estimator's settings as its samples take them: the batch is every worker's, steps are counted over all workers,
// and every worker goes over the whole data. On one machine all three are what they seem.
#include <cmath>

#include "core/error.hpp"
#include "explain/config_import.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMost = 1'000'000;  // workers, units of a layer: far beyond any
constexpr int64_t kMostLayers = 1'000;

class EstimatorImport {
  public:
    EstimatorImport(FlagList& flags, Imported& config) : f_(flags), c_(config) {}

    void run() {
        read_cluster();
        read_job();
        read_model();
        read_data();
        read_running();
    }

  private:
    void read_cluster() {
        if (const auto tier = f_.take_text({"scale_tier"})) {
            if (*tier == "STANDARD_1") workers_ = 5;
            if (*tier == "PREMIUM_1") workers_ = 20;
            c_.remark(fmt::format(
                "--scale_tier={}: {}", *tier,
                workers_ > 1 ? counted(workers_, "worker") + " with the master" : std::string("see --workers")));
        }
        if (const auto workers = f_.take_count({"workers", "num_workers"}, 1)) workers_ = *workers;
        if (const auto beside = f_.take_count({"worker_count"}, 0, kMost)) workers_ = *beside + 1;
        c_.not_needed(f_,
                      {"parameter_server_count", "num_ps", "ps_hosts", "worker_hosts", "task_index", "job_name",
                       "task_type", "master_machine_type", "worker_machine_type"},
                      "mpirun starts the ranks; there are no parameter servers");
        if (workers_ == 1) return;
        c_.remark(
            fmt::format("{} workers there: each went over the whole data, {} times the steps an epoch, updates without "
                        "waiting",
                        workers_, workers_));
    }

    void read_job() {
        // "--train-batch-size", and where there are several workers what it is of.
        const auto named = [&](std::initializer_list<std::string_view> names, std::string_view among_workers) {
            return fmt::format("{}{}{}", f_.name_of(names), workers_ == 1 ? "" : ": ",
                               workers_ == 1 ? "" : among_workers);
        };
        const auto batch_words = named({"batch_size", "train_batch_size"}, "every worker's there, of all here");
        const auto batch = f_.take_count({"batch_size", "train_batch_size"}, 1);
        c_.set("batch.size", batch.value_or(128), batch ? batch_words : "no batch is named; the samples' own");
        import_parts({.workers = workers_, .who = "worker", .batch = batch.value_or(128), .each = batch.value_or(128)},
                     c_);
        const auto epoch_words =
            named({"num_epochs", "train_epochs", "epochs"}, "of every worker there, of the data here");
        const auto epochs = f_.take_count({"num_epochs", "train_epochs", "epochs"}, 1);
        const auto step_words =
            named({"max_steps", "train_steps", "train_max_steps", "steps"}, "there the sum over workers, here updates");
        const auto steps = f_.take_count({"max_steps", "train_steps", "train_max_steps", "steps"}, 1);
        if (steps) {
            c_.set("train.steps", *steps, step_words);
            if (epochs)
                c_.remark(
                    fmt::format("--num_epochs={}: what ends first ends the run there; --max_steps is kept", *epochs));
        } else {
            c_.set("train.epochs", epochs.value_or(1), epochs ? epoch_words : "one, as none is named");
        }
        const FlagList::Flag* optimizer = f_.take({"optimizer", "dnn_optimizer"});
        lr_name_ = f_.name_of({"learning_rate", "lr", "dnn_learning_rate"});
        const auto lr = f_.take_number({"learning_rate", "lr", "dnn_learning_rate"});
        set_optimizer(optimizer != nullptr ? optimizer->value : "Adam",
                      optimizer != nullptr ? optimizer->spelled : "none is named: Adam, as in the census report", lr);
        const std::string l2_name = f_.name_of({"l2_regularization", "l2_regularization_strength", "l2"});
        if (const auto l2 = f_.take_number({"l2_regularization", "l2_regularization_strength", "l2"}, 0); l2 && *l2 > 0)
            c_.set("optimizer.l2", *l2, l2_name + ": in the loss");
        const std::string clip_name = f_.name_of({"clip_norm", "gradient_clip_norm"});
        if (const auto clip = f_.take_number({"clip_norm", "gradient_clip_norm"}, 0); clip && *clip > 0) {
            c_.set("optimizer.clip_norm", *clip,
                   clip_name + ": of each worker's gradient there, of the whole one here");
        }
        const std::string rate_name = f_.name_of({"decay_rate", "learning_rate_decay"});
        if (const auto rate = f_.take_number({"decay_rate", "learning_rate_decay"}, 0)) {
            c_.set_text("schedule.name", "exponential", rate_name);
            c_.set("schedule.rate", *rate, rate_name);
            c_.set("schedule.every_epochs", 1.0, "an epoch; theirs counts the steps of all workers");
        }
    }

    void set_optimizer(const std::string& name, const std::string& why, const std::optional<double>& lr) {
        struct Row {
            std::string_view theirs, ours;
            double lr;
        };
        constexpr Row kRows[] = {{"Adam", "adam", 0.001},
                                 {"SGD", "sgd", 0.05},
                                 {"Adagrad", "adagrad", 0.05},
                                 {"RMSProp", "rmsprop", 0.001},
                                 {"Momentum", "momentum", 0.05}};
        for (const Row& row : kRows) {
            const bool same =
                name == row.theirs || name == row.ours || (name.starts_with(row.theirs) && name.ends_with("Optimizer"));
            if (!same) continue;
            c_.set_text("optimizer.name", row.ours, why);
            c_.set("optimizer.lr", lr.value_or(row.lr),
                   lr ? lr_name_ + ", of one worker as of many" : "TensorFlow's default");
            if (row.ours == "adagrad") c_.set("optimizer.initial", 0.1, "TensorFlow's sum of squares starts at 0.1");
            return;
        }
        fail(ErrorKind::kUsage, "--optimizer={}: Lockstep has Adam, Adagrad, RMSProp, SGD and Momentum of TensorFlow's",
             name);
    }

    void read_model() {
        const std::string type = f_.take_text({"model_type"}).value_or("wide_deep");
        if (type == "wide") {
            c_.set_text("model.name", "logistic", "--model_type=wide: the linear part alone");
            return;
        }
        c_.set_text("model.name", type == "deep" ? "mlp" : "wide_deep", fmt::format("--model_type={}", type));
        std::vector<int64_t> hidden{100, 75, 50, 25};
        std::string why = "the tutorial's";
        if (const auto units = f_.take_counts({"hidden_units"})) {
            hidden = *units;
            why = "--hidden_units";
        } else if (const auto first = f_.take_count({"first_layer_size"}, 1, kMost)) {
            // The census sample: every layer scale_factor times the one before, at least 2.
            const int64_t layers = f_.take_count({"num_layers"}, 1, kMostLayers).value_or(4);
            const double factor = f_.take_number({"scale_factor"}, 0).value_or(0.7);
            hidden.clear();
            for (int64_t i = 0; i < layers; ++i) {
                const double size = std::floor(static_cast<double>(*first) * std::pow(factor, static_cast<double>(i)));
                if (!(size <= kMost)) {
                    fail(ErrorKind::kUsage, "--scale_factor={}: layer {} of {} would have {:.4g} units", factor, i + 1,
                         layers, size);
                }
                hidden.push_back(std::max<int64_t>(2, static_cast<int64_t>(size)));
            }
            why = fmt::format("--first_layer_size={}, each {} times the one before", *first, factor);
        }
        c_.set("model.hidden", fmt::format("[{}]", fmt::join(hidden, ", ")), why);
        if (const auto dropout = f_.take_number({"dropout"})) c_.set("model.dropout", *dropout, "--dropout");
    }

    void read_data() {
        const auto files = [&](std::initializer_list<std::string_view> names, const char* key) {
            const FlagList::Flag* flag = f_.take(names);
            if (flag == nullptr) return false;
            std::string list;
            for (const std::string& part : parts_of(flag->value))
                list.append(list.empty() ? "" : ", ").append(toml_quoted(part));
            c_.set(key, "[" + list + "]",
                   fmt::format("{}", flag->spelled.substr(0, flag->spelled.find_first_of("= "))));
            return true;
        };
        if (!files({"train_files", "train_file", "train_data"}, "data.train")) {
            c_.set_text("data.format", "synthetic", "no --train_files: made-up data, to try the settings");
            if (const auto samples = f_.take_count({"samples", "train_examples"}, 1))
                c_.set("data.samples", *samples, "--samples");
            c_.set("data.classes", int64_t{2}, "two, as in the census");
            return;
        }
        files({"eval_files", "eval_file", "test_files", "eval_data"}, "data.test");
        c_.set_text("data.format", "csv", "declare its columns, as configs/census_wide_deep.toml does for the census");
    }

    void read_running() {
        c_.set_counts(f_, {{{"tf_random_seed", "random_seed", "seed"}, "seed", kOtherNumbers, 0},
                           {{"save_checkpoints_steps"}, "checkpoint.every_steps"},
                           {{"keep_checkpoint_max"}, "checkpoint.keep"},
                           {{"log_step_count_steps"}, "log.every"}});
        if (const auto folder = f_.take_text({"job_dir", "model_dir"}))
            c_.remark(fmt::format("--job_dir={}: lockstep train --out", *folder));
        c_.not_needed(f_, {"eval_steps", "eval_batch_size", "eval_num_epochs", "throttle_secs", "eval_delay_secs"},
                      "evaluation sees every sample once");
        c_.not_needed(f_, {"save_summary_steps", "verbosity", "export_format", "eval_frequency"},
                      "a matter of display");
        c_.cannot(f_, {"save_checkpoints_secs"}, "the clock decides nothing here; checkpoint.every_steps does");
        c_.cannot(f_, {"embedding_size"}, "the embedding is a matter of the columns declared in [data]");
        c_.cannot(f_, {"linear_optimizer"}, "one optimizer for all weights");
    }

    FlagList& f_;
    Imported& c_;
    int64_t workers_ = 1;
    std::string lr_name_;
};

}  // namespace

void import_estimator(FlagList& flags, Imported& config) {
    EstimatorImport(flags, config).run();
}

}  // namespace lockstep

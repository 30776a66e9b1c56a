// tf.estimator's settings as its samples take them: the batch is every worker's, steps are counted over all workers,
// and every worker goes over the whole data. On one machine all three are what they seem.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "explain/import_census.hpp"
#include "explain/launch.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMost = 1'000'000;  // workers, units of a layer: far beyond any
constexpr int64_t kMostLayers = 1'000;

class EstimatorImport {
  public:
    EstimatorImport(CommandLine& line, Imported& config)
        : line_(line), f_(line.flags), c_(config), script_(census_script(line.script_name())) {}

    void run() {
        read_cluster();
        read_job();
        read_model();
        read_data();
        read_running();
    }

  private:
    /// The script's flag, or gcloud's in front of it.
    FlagList& that_has(std::initializer_list<std::string_view> names) {
        FlagList* const gcloud = line_.flags_of(LauncherKind::kGcloud);
        return gcloud != nullptr && !f_.has(names) ? *gcloud : f_;
    }

    void read_cluster() {
        const Launch launch = read_launch(line_);
        if (launch.processes.value_or(1) > 1)
            c_.refuse(fmt::format("{}: the same command so many times; this is the job of one", launch.words));
        if (const auto tier = that_has({"scale_tier"}).take_text({"scale_tier"})) {
            if (*tier == "STANDARD_1") workers_ = 5;
            if (*tier == "PREMIUM_1") workers_ = 20;
            if (*tier == "CUSTOM" && !that_has({"worker_count"}).has({"worker_count"}))
                c_.change(
                    "--scale_tier=CUSTOM: the number of workers stands in a file; this is the job of one, the master");
            c_.remark(fmt::format(
                "--scale_tier={}: {}", *tier,
                workers_ > 1 ? counted(workers_, "worker") + " with the master" : std::string("see --workers")));
        }
        if (const auto workers = f_.take_count({"workers", "num_workers"}, 1)) workers_ = *workers;
        if (const auto beside = that_has({"worker_count"}).take_count({"worker_count"}, 0, kMost))
            workers_ = *beside + 1;
        if (const auto hosts = f_.take_text({"worker_hosts"}))
            workers_ = std::max<int64_t>(1, static_cast<int64_t>(parts_of(*hosts).size()));
        c_.not_needed(f_,
                      {"parameter_server_count", "num_ps", "ps_hosts", "task_index", "job_name", "task_type",
                       "master_machine_type", "worker_machine_type"},
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
        const int64_t size = batch.value_or(script_.batch);
        c_.set("batch.size", size,
               batch           ? batch_words
               : script_.known ? "no batch is named: the script's own"
                               : "no batch is named: as in the census report");
        import_parts({.workers = workers_, .who = "worker", .batch = size, .each = size}, c_);
        const auto epoch_words =
            named({"num_epochs", "train_epochs", "epochs"}, "of every worker there, of the data here");
        const auto epochs = f_.take_count({"num_epochs", "train_epochs", "epochs"}, 1);
        const auto step_words =
            named({"max_steps", "train_steps", "train_max_steps", "steps"}, "there the sum over workers, here updates");
        const auto steps = f_.take_count({"max_steps", "train_steps", "train_max_steps", "steps"}, 1);
        if (steps) {
            c_.set("train.steps", *steps, step_words);
            if (epochs)
                c_.change(fmt::format("{} with {}: what ends first ends the run there; the steps are kept", epoch_words,
                                      step_words));
        } else if (!epochs && script_.steps > 0) {
            c_.set("train.steps", script_.steps, "no steps are named: the script's own");
        } else {
            c_.set("train.epochs", epochs.value_or(std::max<int64_t>(1, script_.epochs)),
                   epochs          ? epoch_words
                   : script_.known ? "none is named: the script's own"
                                   : "one, as none is named");
        }
        const std::string every_name = f_.name_of({"epochs_between_evals"});
        const auto every = f_.take_count({"epochs_between_evals"}, 1);
        if (every || script_.eval_every > 0)
            c_.set("eval.every_epochs", every.value_or(script_.eval_every), every ? every_name : "the script's own");
        const FlagList::Flag* optimizer = f_.take_valued({"optimizer", "dnn_optimizer"});
        lr_name_ = f_.name_of({"learning_rate", "lr", "dnn_learning_rate"});
        const auto lr = f_.take_number({"learning_rate", "lr", "dnn_learning_rate"});
        const std::string own = script_.known ? "Adagrad" : "Adam";
        set_optimizer(optimizer != nullptr ? optimizer->value : own,
                      optimizer != nullptr ? optimizer->spelled
                      : script_.known      ? "none is named: the estimator's own, of its deep part"
                                           : "none is named: Adam, as in the census report",
                      lr);
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
            if (script_.known) name_ftrl();
            return;
        }
        if (type != "deep" && type != "wide_deep" && type != "wide_n_deep")
            fail(ErrorKind::kUsage, "--model_type={}: it is wide, deep or wide_deep", type);
        if (type != "deep" && script_.known) name_ftrl();
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

    void name_ftrl() {
        c_.change(
            "the linear part: by Ftrl, with a rate of its own there; here one optimizer and rate for all weights");
    }

    void read_data() {
        bool census = false;
        const auto files = [&](std::initializer_list<std::string_view> names, const char* key) {
            const FlagList::Flag* flag = f_.take_valued(names);
            if (flag == nullptr) return false;
            std::string list;
            for (const std::string& part : parts_of(flag->value)) {
                census = census || is_census_file(part);
                list.append(list.empty() ? "" : ", ").append(toml_quoted(part));
            }
            c_.set(key, "[" + list + "]",
                   fmt::format("{}", flag->spelled.substr(0, flag->spelled.find_first_of("= "))));
            return true;
        };
        const auto given = f_.take_text({"data_dir"});
        std::string folder = given.value_or(script_.folder);
        while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
        const bool trains = files({"train_files", "train_file", "train_data", "train_data_file"}, "data.train");
        const bool tests = files({"eval_files", "eval_file", "test_files", "test_file", "eval_data", "test_data",
                                  "validation_data", "eval_data_file", "test_data_file"},
                                 "data.test");
        const char* const samples_flag = "train_examples";
        const auto samples = f_.take_count({"samples", samples_flag}, 1);
        if (!trains && (script_.known || given) && !folder.empty()) {
            census = true;
            c_.set_text("data.train", folder + "/adult.data", given ? "--data_dir" : "the script's own folder");
            if (!tests)
                c_.set_text("data.test", folder + "/adult.test", given ? "--data_dir" : "the script's own folder");
        } else if (!trains) {
            c_.set_text("data.format", "synthetic", "no --train_files: made-up data, to try the settings");
            if (samples) c_.set("data.samples", *samples, "--samples");
            c_.set("data.classes", int64_t{2}, "two, as in the census");
            if (tests) c_.change("the test data: not without training data of their kind; write [data]");
            return;
        }
        if (census || script_.known) return import_census_columns(!c_.has("model.name", "mlp"), c_);
        c_.set_text("data.format", "csv", "declare its columns, as configs/census_wide_deep.toml does for the census");
        c_.change("the columns: guessed from the file, the last one as the label; declare yours as [[data.columns]]");
    }

    void read_running() {
        c_.set_counts(f_, {{{"tf_random_seed", "random_seed", "seed"}, "seed", kOtherNumbers, 0},
                           {{"save_checkpoints_steps"}, "checkpoint.every_steps"},
                           {{"keep_checkpoint_max"}, "checkpoint.keep"},
                           {{"log_step_count_steps"}, "log.every"}});
        for (const char* name : {"job_dir", "model_dir"}) {
            if (const auto folder = that_has({name}).take_text({name}))
                c_.remark(fmt::format("--{}={}: lockstep train --out", name, *folder));
        }
        c_.not_needed(f_,
                      {"eval_steps", "eval_batch_size", "eval_num_epochs", "throttle_secs", "eval_delay_secs",
                       "min_eval_frequency"},
                      "evaluation sees every sample once");
        c_.not_needed(f_,
                      {"save_summary_steps", "verbosity", "verbose_logging", "export_format", "eval_frequency", "hooks",
                       "export_dir", "benchmark_log_dir", "benchmark_test_id", "download_if_missing", "clean",
                       "num_gpus", "inter_op_parallelism_threads", "intra_op_parallelism_threads", "dataset"},
                      "a matter of speed or display");
        c_.cannot(f_, {"stop_threshold"}, "train.stop_metric ends a run that gets no better, not at a number");
        c_.cannot(f_, {"save_checkpoints_secs"}, "the clock decides nothing here; checkpoint.every_steps does");
        c_.cannot(f_, {"embedding_size"}, "the embedding is a matter of the columns declared in [data]");
        c_.cannot(f_, {"linear_optimizer"}, "one optimizer for all weights");
    }

    CommandLine& line_;
    FlagList& f_;
    Imported& c_;
    CensusScript script_;
    int64_t workers_ = 1;
    std::string lr_name_;
};

}  // namespace

void import_estimator(CommandLine& line, Imported& config) {
    EstimatorImport(line, config).run();
}

}  // namespace lockstep

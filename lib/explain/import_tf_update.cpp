// tf_cnn_benchmarks' optimizers, in TensorFlow's forms, and its learning rates: what is not given follows from the
// model.
#include <algorithm>

#include "core/error.hpp"
#include "explain/import_tf_cnn.hpp"
#include "explain/their_schedule.hpp"

namespace lockstep {
namespace {

class RatesImport {
  public:
    RatesImport(FlagList& flags, Imported& config, const TfJob& job) : f_(flags), c_(config), job_(job) {}

    void read_rates() {
        const auto lr = f_.take_number({"init_learning_rate"});
        const auto piecewise = f_.take_text({"piecewise_learning_rate_schedule"});
        const auto per_decay = f_.take_number({"num_epochs_per_decay"}, 0).value_or(0);
        const auto factor = f_.take_number({"learning_rate_decay_factor"}, 0).value_or(0);
        const auto least = f_.take_number({"minimum_learning_rate"}, 0).value_or(0);
        const auto base = f_.take_number({"resnet_base_lr"}, 0);
        double warmup = f_.take_number({"num_learning_rate_warmup_epochs"}, 0).value_or(0);
        std::string warmup_why = "--num_learning_rate_warmup_epochs";
        if (piecewise) {
            const PiecewiseRates rates = parse_piecewise_rates("--piecewise_learning_rate_schedule", *piecewise);
            set_rate(rates.values.front(), "--piecewise_learning_rate_schedule: its first rate");
            if (!rates.epochs.empty()) set_piecewise(rates, false, "--piecewise_learning_rate_schedule");
        } else if (lr) {
            set_rate(*lr, "--init_learning_rate");
            if (per_decay > 0 && factor > 0) set_decay(per_decay, factor, least);
        } else if (job_.model->lr > 0 && !(job_.cifar && job_.model->ours == "alexnet")) {
            set_rate(job_.model->lr, "its default for this model");
        } else if (job_.model->ours == "alexnet") {
            set_rate(0.1, "its default for this model and data");
            set_decay(100, 0.1, 0);
        } else {
            set_model_rates(base, warmup, warmup_why);
        }
        if (warmup > 0) c_.set("schedule.warmup_epochs", warmup, warmup_why);
    }

  private:
    /// A schedule by epochs, with the step at which each rate begins there and here.
    void set_piecewise(const PiecewiseRates& rates, bool models_own, const std::string& why) {
        const TheirSteps steps{job_.samples, job_.batch};
        std::string moves;
        for (const double epoch : rates.epochs) {
            moves += fmt::format("{}{} -> {}", moves.empty() ? "" : ", ",
                                 their_first_step_after(steps, epoch) + (models_own ? 1 : 0),
                                 our_first_update_after(steps, epoch));
        }
        c_.set_text("schedule.name", "piecewise", why);
        c_.set("schedule.boundaries", toml_list(rates.epochs),
               fmt::format("epochs; steps from 0 there -> updates from 1 here: {}", moves));
        c_.set("schedule.values", toml_list(rates.values), why + ": rates before, between and after them");
    }

    void set_rate(double lr, const std::string& why) {
        lr_ = lr;
        c_.set("optimizer.lr", lr, why);
    }

    void set_decay(double epochs, double factor, double least) {
        if (least > 0 && factor < 1) return set_floored(epochs, factor, least);
        c_.set_text("schedule.name", "step", "falls at once every so many epochs");
        c_.set("schedule.every_epochs", epochs, "--num_epochs_per_decay");
        c_.set("schedule.factor", factor, "--learning_rate_decay_factor");
    }

    /// The same down to --minimum_learning_rate, which a step schedule does not have: each rate is written.
    void set_floored(double epochs, double factor, double least) {
        constexpr std::size_t kMostRates = 1000;
        PiecewiseRates rates{{std::max(lr_, least)}, {}};
        for (double rate = lr_ * factor; rates.values.back() > least; rate *= factor) {
            if (rates.values.size() == kMostRates) {
                fail(ErrorKind::kUsage, "--minimum_learning_rate={}: it takes more than {} rates to get there", least,
                     kMostRates);
            }
            rates.values.push_back(std::max(rate, least));
            rates.epochs.push_back(epochs * static_cast<double>(rates.epochs.size() + 1));
        }
        if (!rates.epochs.empty())
            set_piecewise(rates, false,
                          "--num_epochs_per_decay, --learning_rate_decay_factor, --minimum_learning_rate");
    }

    void set_model_rates(std::optional<double> base, double& warmup, std::string& warmup_why) {
        const bool cifar = job_.model->side == 32;
        PiecewiseRates rates = cifar ? their_cifar_resnet_rates() : their_resnet50_rates(job_.batch);
        if (base && !cifar) {
            for (double& value : rates.values) value *= *base / 0.128;
        }
        set_rate(rates.values.front(), cifar  ? "its own for CIFAR"
                                       : base ? "--resnet_base_lr, for a batch of 256, in proportion"
                                              : "its own: .128 for a batch of 256, in proportion");
        set_piecewise(rates, true, "its own for this model");
        if (cifar) return;
        warmup = 5;
        warmup_why = "its own for this model";
    }

    FlagList& f_;
    Imported& c_;
    const TfJob& job_;
    double lr_ = 0;
};

}  // namespace

void import_tf_rates(FlagList& flags, Imported& config, const TfJob& job) {
    RatesImport(flags, config, job).read_rates();
}

void import_tf_optimizer(FlagList& flags, Imported& config, const TfJob& job) {
    const std::string name = flags.take_text({"optimizer"}).value_or("sgd");
    const double momentum = flags.take_number({"momentum"}).value_or(0.9);
    const double rms_decay = flags.take_number({"rmsprop_decay"}).value_or(0.9);
    const double rms_momentum = flags.take_number({"rmsprop_momentum"}).value_or(0.9);
    const double rms_epsilon = flags.take_number({"rmsprop_epsilon"}).value_or(1.0);
    const double beta1 = flags.take_number({"adam_beta1"}).value_or(0.9);
    const double beta2 = flags.take_number({"adam_beta2"}).value_or(0.999);
    const double adam_epsilon = flags.take_number({"adam_epsilon"}).value_or(1e-8);
    if (name == "momentum") {
        config.set_text("optimizer.name", "nesterov", "--optimizer=momentum: always Nesterov's there");
        config.set("optimizer.momentum", momentum, "--momentum");
    } else if (name == "rmsprop") {
        config.set_text("optimizer.name", "rmsprop", "--optimizer=rmsprop");
        config.set("optimizer.rho", rms_decay, "--rmsprop_decay");
        config.set("optimizer.rmsprop_momentum", rms_momentum, "--rmsprop_momentum: of the step");
        config.set("optimizer.epsilon", rms_epsilon, "--rmsprop_epsilon");
        config.set("optimizer.epsilon_inside", "true", "TensorFlow adds it inside the root");
        config.set("optimizer.initial", 1.0, "TensorFlow's mean square starts at 1");
    } else if (name == "adam") {
        config.set_text("optimizer.name", "adam", "--optimizer=adam");
        config.set("optimizer.beta1", beta1, "--adam_beta1");
        config.set("optimizer.beta2", beta2, "--adam_beta2");
        config.set("optimizer.epsilon", adam_epsilon,
                   "--adam_epsilon; theirs stands beside the uncorrected root: the larger, the earlier the step");
    } else if (name == "sgd") {
        config.set_text("optimizer.name", "sgd", "--optimizer=sgd, its default");
    } else {
        fail(ErrorKind::kUsage, "--optimizer={}: Lockstep knows sgd, momentum, rmsprop and adam of that program's",
             name);
    }
    const double decay = flags.take_number({"weight_decay"}).value_or(4e-5);
    if (decay == 0) return;
    config.set("optimizer.l2", decay, "--weight_decay (4e-05 if not given): a part of its loss");
    if (job.model->batch_norm) {
        config.set_text("optimizer.decay", "weights", "not of batch norm; theirs has the last layer's bias, too");
    }
}

}  // namespace lockstep

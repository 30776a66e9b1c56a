// torchvision's --opt and its numbers, and those of scripts like it.
#include "core/error.hpp"
#include "explain/import_ddp.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kScriptsOwn = "the default of torchvision's and PyTorch's scripts";

class DdpOptimizer {
  public:
    DdpOptimizer(FlagList& flags, Imported& config) : f_(flags), c_(config) {}

    double read(std::string_view whole) {
        read_name();
        const std::string lr_name = f_.name_of({"lr", "learning_rate"});
        const auto lr = f_.take_number({"lr", "learning_rate"});
        c_.set("optimizer.lr", lr.value_or(0.1),
               lr ? fmt::format("{}: DDP averages and does not scale it; for {} samples", lr_name, whole)
                  : fmt::format("no --lr: {}", kScriptsOwn));
        read_decay();
        if (const auto clip = f_.take_number({"clip_grad_norm", "max_grad_norm"}, 0); clip && *clip > 0) {
            c_.set("optimizer.clip_norm", *clip, "--clip-grad-norm: of the mean gradient, there too");
        }
        return lr.value_or(0.1);
    }

  private:
    void read_name() {
        const auto given = f_.take_text({"opt", "optimizer", "optim"});
        name_ = lower_case(given.value_or("sgd"));
        const std::string words = given ? fmt::format("--opt {}", *given) : "no --opt: the scripts' SGD";
        const std::string momentum_name = f_.name_of({"momentum"});
        const double momentum = f_.take_number({"momentum"}).value_or(0.9);
        const std::string momentum_words =
            momentum_name.empty() ? fmt::format("no --momentum: {}", kScriptsOwn) : "--momentum";
        const bool nesterov = name_.find("nesterov") != std::string::npos || f_.take_switch("nesterov").value_or(false);
        if (name_.starts_with("sgd")) {
            c_.set_text("optimizer.name", momentum == 0 ? "sgd" : nesterov ? "nesterov" : "momentum", words);
            if (momentum != 0) c_.set("optimizer.momentum", momentum, momentum_words);
        } else if (name_ == "adam" || name_ == "adamw" || name_ == "rmsprop" || name_ == "adagrad") {
            c_.set_text("optimizer.name", name_, words);
            if (name_ == "adagrad") c_.set("optimizer.epsilon", 1e-10, "PyTorch's, of this optimizer");
            if (name_ != "rmsprop") return;
            c_.set("optimizer.rho", 0.9, "torchvision's alpha");
            c_.set("optimizer.rmsprop_momentum", momentum, momentum_words + ": of the step");
            c_.set("optimizer.epsilon", 0.0316, "torchvision's, beside the root");
        } else {
            fail(ErrorKind::kUsage,
                 "--opt {}: Lockstep has sgd, sgd_nesterov, adam, adamw, rmsprop and adagrad of PyTorch's", name_);
        }
    }

    void read_decay() {
        const std::string decay_name = f_.name_of({"weight_decay", "wd"});
        const double decay = f_.take_number({"weight_decay", "wd"}, 0).value_or(1e-4);
        if (decay > 0) {
            c_.set("optimizer.weight_decay", decay,
                   fmt::format("{}: {}",
                               decay_name.empty() ? fmt::format("no --weight-decay: {}", kScriptsOwn) : decay_name,
                               name_ == "adamw" ? "of the weights themselves, as PyTorch's AdamW does"
                                                : "added to the mean gradient, as PyTorch does"));
        }
        const auto norm = f_.take_number({"norm_weight_decay"});
        const auto bias = f_.take_number({"bias_weight_decay"});
        if (norm == 0 || bias == 0) {
            c_.set_text("optimizer.decay", "weights",
                        bias == 0 ? "--bias-weight-decay 0: not of biases (nor of batch norm, here)"
                                  : "--norm-weight-decay 0: not of batch norm (nor of biases, here)");
            if (bias != 0) c_.change("--norm-weight-decay 0: biases do not decay either, here");
            if (norm != 0) c_.change("--bias-weight-decay 0: batch norm does not decay either, here");
        }
        if (norm && *norm != 0 && *norm != decay)
            c_.refuse(fmt::format("--norm-weight-decay {}: batch norm decays as the rest does, or not at all", *norm));
        if (bias && *bias != 0 && *bias != decay)
            c_.refuse(fmt::format("--bias-weight-decay {}: biases decay as the rest does, or not at all", *bias));
        c_.cannot(f_, {"transformer_embedding_decay"}, "there are no such parameters in a network of Lockstep's");
    }

    FlagList& f_;
    Imported& c_;
    std::string name_;
};

}  // namespace

double import_ddp_optimizer(FlagList& flags, Imported& config, std::string_view whole) {
    return DdpOptimizer(flags, config).read(whole);
}

}  // namespace lockstep

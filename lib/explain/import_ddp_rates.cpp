// The learning rates of torchvision's training script and PyTorch's ImageNet example. Their schedulers step once an
// epoch, and behind a warm-up the main one counts from its end (SequentialLR): drops come at warm-up + k * step.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "explain/import_ddp.hpp"
#include "explain/their_schedule.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostDdpEpochs = 1'000'000;
constexpr std::size_t kMostDdpRates = 1'000;  // in one list

class DdpRates {
  public:
    DdpRates(FlagList& flags, Imported& config, double lr, int64_t epochs)
        : f_(flags), c_(config), lr_(lr), epochs_(epochs) {}

    void read() {
        read_main();
        warmup_ = f_.take_count({"lr_warmup_epochs"}, 0, kMostDdpEpochs).value_or(0);
        if (warmup_ == 0) {
            set_main();
            c_.not_needed(f_, {"lr_warmup_method", "lr_warmup_decay"}, "no --lr-warmup-epochs, there too");
            return read_other_warmup();
        }
        method_ = lower_case(f_.take_text({"lr_warmup_method"}).value_or("constant"));
        decay_ = f_.take_number({"lr_warmup_decay"}, 0).value_or(0.01);
        if (method_ != "linear" && method_ != "constant")
            fail(ErrorKind::kUsage, "--lr-warmup-method {}: it is linear or constant", method_);
        set_behind_warmup();
    }

  private:
    void read_main() {
        const auto given = f_.take_text({"lr_scheduler", "scheduler"});
        const bool cosine = f_.take_switch("cos").value_or(false);
        const auto milestones = f_.take_counts({"lr_steps", "lr_milestones", "milestones", "schedule"});
        every_ = f_.take_number({"lr_step_size", "step_size"}).value_or(30);
        gamma_ = f_.take_number({"lr_gamma", "gamma"}).value_or(0.1);
        least_ = f_.take_number({"lr_min"}, 0).value_or(0);
        name_ = lower_case(given.value_or(cosine ? "cosineannealinglr" : milestones ? "multisteplr" : "steplr"));
        words_ = given        ? fmt::format("--lr-scheduler {}", *given)
                 : cosine     ? "--cos"
                 : milestones ? "the epochs that are listed"
                              : "no --lr-scheduler: the scripts' default";
        if (milestones) milestones_ = *milestones;
        std::sort(milestones_.begin(), milestones_.end());
        if (name_ != "steplr" && name_ != "multisteplr" && name_ != "cosineannealinglr" && name_ != "exponentiallr") {
            fail(ErrorKind::kUsage, "--lr-scheduler {}: it is steplr, multisteplr, cosineannealinglr or exponentiallr",
                 name_);
        }
        if (name_ == "multisteplr" && milestones_.empty())
            fail(ErrorKind::kUsage, "--lr-scheduler {}: at which epochs? --lr-steps is not there", name_);
    }

    /// Of an epoch that counts from the main scheduler's start, which has so many.
    double main_rate(int64_t epoch, int64_t length) const {
        const auto x = static_cast<double>(epoch);
        if (name_ == "steplr") return lr_ * std::pow(gamma_, std::floor(x / every_));
        if (name_ == "exponentiallr") return lr_ * std::pow(gamma_, x);
        if (name_ == "multisteplr") {
            const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), epoch) - milestones_.begin();
            return lr_ * std::pow(gamma_, static_cast<double>(passed));
        }
        const double p = length > 0 ? x / static_cast<double>(length) : 1;
        return least_ + (lr_ - least_) * (1 + std::cos(std::numbers::pi * p)) / 2;
    }

    /// By the key of the same name, without a warm-up.
    void set_main() {
        if (name_ == "steplr") {
            c_.set_text("schedule.name", "step", words_);
            c_.set("schedule.every_epochs", every_, "--lr-step-size");
            c_.set("schedule.factor", gamma_, "--lr-gamma");
        } else if (name_ == "multisteplr") {
            const auto rate = [&](int64_t epoch) { return main_rate(epoch, epochs_); };
            set_pieces(pieces_by_epoch(std::min(epochs_, kMostDdpEpochs), rate), words_, "--lr-gamma at each");
        } else if (name_ == "cosineannealinglr") {
            c_.set_text("schedule.name", "cosine", words_ + "; theirs moves once an epoch, this one every update");
            c_.set("schedule.end", least_, "--lr-min");
        } else {
            c_.set_text("schedule.name", "exponential", words_);
            c_.set("schedule.rate", gamma_, "--lr-gamma");
            c_.set("schedule.every_epochs", 1.0, "falls once an epoch there");
            c_.set("schedule.staircase", "true", "falls once an epoch there");
        }
    }

    void set_behind_warmup() {
        const std::string words =
            fmt::format("--lr-warmup-epochs {}, {}, from {} of the rate", warmup_, method_, decay_);
        if (name_ == "cosineannealinglr" && method_ == "linear") {
            set_main();
            c_.set("schedule.warmup_epochs", static_cast<double>(warmup_), "--lr-warmup-epochs");
            c_.change(fmt::format("{}: there once an epoch, here at every update and from 0", words));
            return;
        }
        if (name_ == "steplr" && every_ <= 0) fail(ErrorKind::kUsage, "--lr-step-size {}: must be more than 0", every_);
        const int64_t length = std::max<int64_t>(0, epochs_ - warmup_);
        const PiecewiseRates rates = pieces_by_epoch(std::min(epochs_, kMostDdpEpochs), [&](int64_t epoch) {
            if (epoch >= warmup_) return main_rate(epoch - warmup_, length);
            const double part = static_cast<double>(epoch) / static_cast<double>(warmup_);
            return lr_ * (method_ == "linear" ? decay_ + (1 - decay_) * part : decay_);
        });
        if (rates.values.size() > kMostDdpRates) {
            set_main();
            c_.refuse(fmt::format("{}: a list of {} rates would say it, more than {}; the schedule is without it",
                                  words, rates.values.size(), kMostDdpRates));
            return;
        }
        set_pieces(rates, fmt::format("{}, then {} counted from there", words, name_),
                   "once an epoch, there too: warm-up, then the schedule");
    }

    void set_pieces(const PiecewiseRates& rates, const std::string& why, const std::string& values_why) {
        if (rates.epochs.empty()) {
            c_.set("optimizer.lr", rates.values.front(), why + ": one rate for all epochs");
            return;
        }
        c_.set_text("schedule.name", "piecewise", why);
        c_.set("schedule.boundaries", toml_list(rates.epochs), "epochs");
        c_.set("schedule.values", toml_list(rates.values), values_why);
    }

    /// A flag that other scripts have, each with its own meaning.
    void read_other_warmup() {
        const auto epochs = f_.take_number({"warmup_epochs"}, 0);
        if (!epochs || *epochs == 0) return;
        c_.set("schedule.warmup_epochs", *epochs, "--warmup-epochs");
        c_.change(
            fmt::format("--warmup-epochs {}: not torchvision's; taken as linear from 0, at every update, in place "
                        "of a schedule that counts from the first epoch",
                        *epochs));
    }

    FlagList& f_;
    Imported& c_;
    double lr_;
    int64_t epochs_, warmup_ = 0;
    std::string name_, words_, method_;
    double every_ = 30, gamma_ = 0.1, least_ = 0, decay_ = 0.01;
    std::vector<int64_t> milestones_;
};

}  // namespace

void import_ddp_rates(FlagList& flags, Imported& config, double lr, int64_t epochs) {
    DdpRates(flags, config, lr, epochs).read();
}

}  // namespace lockstep

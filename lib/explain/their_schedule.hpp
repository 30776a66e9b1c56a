// Learning rates as other trainers have them: tf_cnn_benchmarks' from its step counter (0-based, whole batches only),
// and where the same rate begins here, so that `config import` can say by how many steps the two are apart; and rates
// that a script sets once an epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace lockstep {

/// Rates and the epochs at which each gives way to the next: one more rate than epochs.
struct PiecewiseRates {
    std::vector<double> values;
    std::vector<double> epochs;
};

/// "1;3;.1;5;.01": a rate, then an epoch and a rate each. Throws kUsage, naming the flag and what is wrong.
PiecewiseRates parse_piecewise_rates(std::string_view flag, std::string_view text);

/// The pieces of a rate that is set once an epoch, as PyTorch's schedulers do: `rate` of 0 … epochs - 1.
PiecewiseRates pieces_by_epoch(int64_t epochs, const std::function<double(int64_t)>& rate);

/// The job as that program's schedule sees it.
struct TheirSteps {
    int64_t samples = 0;
    int64_t batch = 0;  // of all GPUs

    double batches_per_epoch() const { return static_cast<double>(samples) / static_cast<double>(batch); }
    /// Whole batches in so many epochs, the fraction of a batch dropped once, at the end.
    int64_t steps_in(double epochs) const { return static_cast<int64_t>(epochs * batches_per_epoch()); }
};

/// --piecewise_learning_rate_schedule: a rate holds up to and including step steps_in(epoch) - 1.
double their_piecewise_rate(const PiecewiseRates& rates, const TheirSteps& steps, int64_t step);
/// The first step with the rate after `epoch`, there and here: an epoch here has ceil(samples / batch) updates, from 1.
int64_t their_first_step_after(const TheirSteps& steps, double epoch);
int64_t our_first_update_after(const TheirSteps& steps, double epoch);

/// --num_learning_rate_warmup_epochs: lr · step / steps_in(epochs) before that step.
double their_warmup_rate(double lr, double epochs, const TheirSteps& steps, int64_t step);

/// A model's own rates, which hold up to and including step steps_in(epoch).
double their_model_rate(const PiecewiseRates& rates, const TheirSteps& steps, int64_t step);
/// ResNet-50: .128 for a batch of 256, in proportion for others; a tenth after 30, 60, 80 and 90 epochs.
PiecewiseRates their_resnet50_rates(int64_t batch);
/// ResNet-20 … 56 for CIFAR: .1, .01, .001, .0002 at 82, 123 and 300 epochs.
PiecewiseRates their_cifar_resnet_rates();

}  // namespace lockstep

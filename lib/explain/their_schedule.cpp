#include "explain/their_schedule.hpp"

#include <charconv>
#include <cmath>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostRateEpochs = 1'000'000;  // far beyond any, so that steps stay in 64 bits

double rate_after(const PiecewiseRates& rates, const TheirSteps& steps, int64_t step, int64_t last_offset) {
    std::size_t piece = 0;
    while (piece < rates.epochs.size() && step > steps.steps_in(rates.epochs[piece]) + last_offset) ++piece;
    return rates.values[piece];
}

}  // namespace

PiecewiseRates parse_piecewise_rates(std::string_view flag, std::string_view text) {
    PiecewiseRates rates;
    for (std::size_t begin = 0, number = 0; begin <= text.size(); ++number) {
        const std::size_t end = std::min(text.find(';', begin), text.size());
        double value = 0;
        const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
        if (error != std::errc() || stop != text.data() + end || !std::isfinite(value)) {
            fail(ErrorKind::kUsage, "{}={}: \"{}\" is no number; it is RATE;EPOCH;RATE;EPOCH;RATE …", flag, text,
                 text.substr(begin, end - begin));
        }
        (number % 2 == 0 ? rates.values : rates.epochs).push_back(value);
        begin = end + 1;
    }
    if (rates.values.size() != rates.epochs.size() + 1) {
        fail(ErrorKind::kUsage, "{}={}: ends with an epoch; it is RATE;EPOCH;RATE;EPOCH;RATE …", flag, text);
    }
    for (const double epoch : rates.epochs) {
        if (epoch < 0 || epoch > kMostRateEpochs)
            fail(ErrorKind::kUsage, "{}={}: epoch {} must be 0 to {}", flag, text, epoch, kMostRateEpochs);
    }
    for (std::size_t i = 1; i < rates.epochs.size(); ++i) {
        if (rates.epochs[i] <= rates.epochs[i - 1]) {
            fail(ErrorKind::kUsage, "{}={}: epoch {} does not come after epoch {}", flag, text, rates.epochs[i],
                 rates.epochs[i - 1]);
        }
    }
    return rates;
}

PiecewiseRates pieces_by_epoch(int64_t epochs, const std::function<double(int64_t)>& rate) {
    PiecewiseRates rates{{rate(0)}, {}};
    for (int64_t epoch = 1; epoch < epochs; ++epoch) {
        const double value = rate(epoch);
        if (value == rates.values.back()) continue;
        rates.values.push_back(value);
        rates.epochs.push_back(static_cast<double>(epoch));
    }
    return rates;
}

double their_piecewise_rate(const PiecewiseRates& rates, const TheirSteps& steps, int64_t step) {
    return rate_after(rates, steps, step, -1);
}

int64_t their_first_step_after(const TheirSteps& steps, double epoch) {
    return steps.steps_in(epoch);
}

int64_t our_first_update_after(const TheirSteps& steps, double epoch) {
    const int64_t per_epoch = (steps.samples + steps.batch - 1) / steps.batch;
    const double whole = std::floor(epoch);
    // Within an epoch: the first update before which that many samples of it have been used.
    const double used = (epoch - whole) * static_cast<double>(steps.samples);
    return static_cast<int64_t>(whole) * per_epoch +
           static_cast<int64_t>(std::ceil(used / static_cast<double>(steps.batch))) + 1;
}

double their_warmup_rate(double lr, double epochs, const TheirSteps& steps, int64_t step) {
    const int64_t length = steps.steps_in(epochs);
    return step < length ? lr * static_cast<double>(step) / static_cast<double>(length) : lr;
}

double their_model_rate(const PiecewiseRates& rates, const TheirSteps& steps, int64_t step) {
    return rate_after(rates, steps, step, 0);
}

PiecewiseRates their_resnet50_rates(int64_t batch) {
    const double lr = 0.128 * static_cast<double>(batch) / 256;
    return {{lr, lr * 0.1, lr * 0.01, lr * 0.001, lr * 0.0001}, {30, 60, 80, 90}};
}

PiecewiseRates their_cifar_resnet_rates() {
    return {{0.1, 0.01, 0.001, 0.0002}, {82, 123, 300}};
}

}  // namespace lockstep

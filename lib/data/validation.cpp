#include "data/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/epoch_order.hpp"

namespace lockstep {
namespace {

/// One part of a data set. The list of those held out is as long as an index of records in a file would be.
class Part : public Dataset {
  public:
    Part(std::shared_ptr<const Dataset> whole, std::shared_ptr<const std::vector<int64_t>> held_out, bool held,
         uint64_t seed)
        : whole_(std::move(whole)), held_out_(std::move(held_out)), held_(held), seed_(seed) {}

    int64_t size() const override {
        const auto held = static_cast<int64_t>(held_out_->size());
        return held_ ? held : whole_->size() - held;
    }
    SampleShape shape() const override { return whole_->shape(); }
    int classes() const override { return whole_->classes(); }
    std::vector<Column> columns() const override { return whole_->columns(); }
    int32_t read(int64_t index, std::span<float> pixels) const override { return whole_->read(at(index), pixels); }
    int32_t read_crop(int64_t index, const RandomCrop& crop, std::span<float> pixels) const override {
        return whole_->read_crop(at(index), crop, pixels);
    }
    int32_t label(int64_t index) const override { return whole_->label(at(index)); }
    std::vector<std::string> class_names() const override { return whole_->class_names(); }
    std::string sample_name(int64_t index) const override { return whole_->sample_name(at(index)); }
    std::string fingerprint() const override {
        return fmt::format("{} {} {} of {} held out by seed {}", whole_->fingerprint(), held_ ? "the" : "without the",
                           held_out_->size(), whole_->size(), seed_);
    }

  private:
    /// In the whole. Behind k held-out samples lies the rest's number i where the k-th of them is at most i + k.
    int64_t at(int64_t index) const {
        const std::vector<int64_t>& held = *held_out_;
        if (held_) return held[static_cast<std::size_t>(index)];
        std::size_t low = 0, high = held.size();
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (held[middle] - static_cast<int64_t>(middle) <= index) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return index + static_cast<int64_t>(low);
    }

    std::shared_ptr<const Dataset> whole_;
    std::shared_ptr<const std::vector<int64_t>> held_out_;
    bool held_;
    uint64_t seed_;
};

int64_t checked_count(const Config& config, int64_t samples) {
    const int64_t count = held_out_samples(config.data.validation, samples);
    if (count > 0) return count;
    fail(ErrorKind::kUsage, "data.validation = {} of {} training samples is none; set it to 0 or to at least {:.3g}",
         config.data.validation, samples, 1.0 / static_cast<double>(samples));
}

}  // namespace

int64_t held_out_samples(double share, int64_t samples) {
    return static_cast<int64_t>(std::floor(share * static_cast<double>(samples)));
}

std::vector<int64_t> held_out_indices(uint64_t seed, int64_t samples, int64_t count) {
    const EpochOrder order(seed, 0, samples, Shuffle::kFull, 1, Purpose::kValidationSplit);
    std::vector<int64_t> indices(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i) indices[static_cast<std::size_t>(i)] = order.index(i);
    std::sort(indices.begin(), indices.end());
    return indices;
}

DataSplits hold_out(const Config& config, DataSplits splits) {
    if (config.data.validation == 0) return splits;
    const auto seed = static_cast<uint64_t>(config.seed);
    const std::shared_ptr<const Dataset> whole = std::move(splits.train);
    const auto held_out = std::make_shared<const std::vector<int64_t>>(
        held_out_indices(seed, whole->size(), checked_count(config, whole->size())));
    splits.train = std::make_unique<Part>(whole, held_out, false, seed);
    splits.validation = std::make_unique<Part>(whole, held_out, true, seed);
    return splits;
}

DataFacts hold_out(const Config& config, DataFacts facts) {
    if (config.data.validation == 0) return facts;
    facts.validation_samples = checked_count(config, facts.samples);
    facts.samples -= facts.validation_samples;
    facts.memory_bytes += facts.validation_samples * static_cast<int64_t>(sizeof(int64_t));
    return facts;
}

}  // namespace lockstep

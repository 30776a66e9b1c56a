// Training samples varied at random: what is done to a sample is a function of (seed, epoch, position) and of the
// sample, so that it is the same on any number of ranks and threads. In this order: resized crop, pad and crop, flip,
// brightness, contrast, saturation, cutout; each draws from a stream of its own, so that none changes another's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/shape.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "data/random_crop.hpp"

namespace lockstep {

struct AugmentationSpec {
    int pad_crop = 0;  // pixels
    bool flip = false;
    bool resized_crop = false;
    RandomCrop::Spec crop;
    float brightness = 0, contrast = 0, saturation = 0;
    int cutout = 0;  // pixels
    /// How samples were normalised: one for all channels or one each. Padding is black before normalisation, and
    /// colours are changed there, in 0 to 1.
    std::vector<ChannelScale> scales{{}};

    bool any() const {
        return pad_crop > 0 || flip || resized_crop || brightness > 0 || contrast > 0 || saturation > 0 || cutout > 0;
    }
};

struct Config;
/// [augment] of a config, and how its [data] are normalised.
AugmentationSpec augmentation_spec(const Config& config);

class Augmentation {
  public:
    /// kUsage where the samples have one pixel (rows of a table), or scales for another number of channels.
    Augmentation(const AugmentationSpec& spec, uint64_t seed, SampleShape shape);

    /// Sample `index` of `data` as it is trained on at this place, and its label.
    int32_t read(const Dataset& data, int64_t index, int64_t epoch, int64_t position, std::span<float> pixels) const;
    /// All but the resized crop, on a sample that was read.
    void apply(int64_t epoch, int64_t position, std::span<float> pixels) const;

  private:
    float black(size_t channel) const { return blacks_[blacks_.size() == 1 ? 0 : channel]; }
    void shift(int down, int right, std::span<float> pixels) const;
    void mirror(std::span<float> pixels) const;
    void colour(int64_t epoch, uint64_t position, std::span<float> pixels) const;
    void cut_out(uint32_t row, uint32_t column, std::span<float> pixels) const;

    AugmentationSpec spec_;
    uint64_t seed_;
    SampleShape shape_;
    std::vector<float> blacks_;  // of each scale: 0 normalised
};

}  // namespace lockstep

#include "data/dataset.hpp"

#include "data/random_crop.hpp"

namespace lockstep {

int32_t Dataset::read_crop(int64_t index, const RandomCrop& crop, std::span<float> pixels) const {
    const SampleShape form = shape();
    std::vector<float> whole(pixels.size());
    const int32_t label = read(index, whole);
    resize_values(whole, form.height, form.width, form.channels, crop.region(form.height, form.width), form.height,
                  form.width, pixels);
    return label;
}

}  // namespace lockstep

// What the tests of picture formats share: reading samples, and configs for them.
#pragma once

#include <filesystem>

#include "config/config.hpp"
#include "data/data_facts.hpp"
#include "data/dataset.hpp"
#include "io/files.hpp"
#include "io/temp_folder.hpp"

namespace lockstep::test {

inline const std::string kPictures = std::string(LOCKSTEP_TEST_FILES) + "/pictures/";
inline const std::string kOddPictures = std::string(LOCKSTEP_TEST_FILES) + "/../../io/files/pictures/";

inline Config config_for(const std::string& format, const std::vector<std::string>& train,
                         const std::vector<int64_t>& shape = {}) {
    Config config;
    config.data.format = format;
    config.data.train.paths = train;
    config.data.shape = shape;
    return config;
}

inline std::vector<float> pixels_of(const Dataset& data, int64_t index) {
    std::vector<float> pixels(static_cast<size_t>(data.shape().elements()));
    CHECK(data.read(index, pixels) == data.label(index));
    return pixels;
}

/// As bytes, of data that are not normalised.
inline std::vector<int> bytes_of_sample(const Dataset& data, int64_t index) {
    std::vector<int> bytes;
    for (const float pixel : pixels_of(data, index)) bytes.push_back(static_cast<int>(pixel * 255.0f + 0.5f));
    return bytes;
}

inline void check_facts(const Config& config) {
    const DataFacts facts = data_facts(config);
    const DataSplits opened = open_data(config);
    CHECK(facts.samples == opened.train->size());
    CHECK(facts.test_samples == (opened.test ? opened.test->size() : 0));
    CHECK(facts.shape == opened.train->shape());
    CHECK(facts.classes == opened.train->classes());
}

}  // namespace lockstep::test

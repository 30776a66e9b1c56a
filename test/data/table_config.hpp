// Configs of tables for tests: columns in one line each, and whole data sets as values to compare.
#pragma once

#include <bit>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "data/dataset.hpp"

namespace lockstep::test {

inline const std::string kFiles = LOCKSTEP_TEST_FILES;

inline ConfigTable column(std::initializer_list<std::pair<std::string, ConfigTable::Value>> entries) {
    return {{entries.begin(), entries.end()}, "exp.toml:3:1"};
}

inline Config table_config(const std::string& format, const std::string& train, const std::string& test = "") {
    Config config;
    config.data.format = format;
    config.data.train.paths = {train};
    if (!test.empty()) config.data.test.paths = {test};
    return config;
}

/// Values of all samples as bits, each followed by its label.
inline std::vector<int32_t> contents(const Dataset& data) {
    std::vector<int32_t> all;
    std::vector<float> values(static_cast<size_t>(data.shape().elements()));
    for (int64_t i = 0; i < data.size(); ++i) {
        const int32_t label = data.read(i, values);
        for (const float value : values) all.push_back(std::bit_cast<int32_t>(value));
        all.push_back(label);
    }
    return all;
}

inline std::vector<float> sample(const Dataset& data, int64_t index) {
    std::vector<float> values(static_cast<size_t>(data.shape().elements()));
    data.read(index, values);
    return values;
}

/// The Adult columns in their order; "?" and blanks and the dots of the test labels as they are.
inline std::vector<ConfigTable> adult_columns() {
    std::vector<ConfigTable> columns;
    for (const char* name :
         {"age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
          "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country"}) {
        columns.push_back(column({{"name", std::string(name)}}));
    }
    columns.push_back(
        column({{"name", std::string("income")}, {"type", std::string("label")}, {"strip", std::string(".")}}));
    return columns;
}

}  // namespace lockstep::test

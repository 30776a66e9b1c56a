// tf.Example, the Protocol Buffers message that TFRecord files of data sets hold: named features, each a list of byte
// strings, floats or integers. Read from the wire, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class TfExample {
  public:
    /// `bytes` must outlive it. Throws kData, saying what is wrong and where in `bytes`, but not of which file.
    explicit TfExample(std::span<const std::byte> bytes);

    /// The one value of a feature. kData where it is missing, of another kind, or holds several.
    std::span<const std::byte> bytes_of(std::string_view name) const;
    int64_t integer_of(std::string_view name) const;

    struct Feature {
        std::string_view name;
        int kind = 0;                       // 1: byte strings, 2: floats, 3: integers, 0: none
        std::span<const std::byte> values;  // the list, as a message
    };
    const std::vector<Feature>& features() const { return features_; }

  private:
    const Feature& find(std::string_view name, int kind) const;
    std::vector<Feature> features_;
};

}  // namespace lockstep

// The trainable tensors of a network, in model order, and where each lies in the flat arrays (weights, gradients,
// slots).
//
// Files hold PyTorch's order. The flat arrays do too, but for one case: activations are NHWC, so a dense layer behind a
// spatial map reads its inputs as (h, w, c) where PyTorch flattens (c, h, w). Its columns are kept in memory order and
// turned on the way to and from a file; whatever is defined by a file's order (initial values, the gradient norm) asks
// file_columns().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/shape.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

/// Initial values: normal(0, sd) by Box-Muller in fp64 rounded once, or a constant.
struct Initial {
    enum class Kind { kNormal, kConstant } kind = Kind::kConstant;
    double value = 0;  // standard deviation, or the constant
};

struct Parameter {
    std::string name;            // PyTorch's: "fc1.weight", "conv1.bias"
    std::vector<int64_t> shape;  // PyTorch's: [out, in], [out, in, kh, kw], [out]
    int64_t count = 0;           // elements
    int64_t offset = 0;          // first element in the flat arrays; a multiple of 16 (64 bytes)
    Initial initial;
    SampleShape flattened{};  // of a dense weight behind a spatial map: the map's shape; else 1x1x1

    bool is_weight() const { return shape.size() >= 2; }  // for optimizer.decay = "weights"
    /// Where the j-th column of a row of the file lies in a row of memory: file_columns()[j]. Empty where both orders
    /// are one.
    std::vector<int32_t> file_columns() const;
};

/// values: the tensor in a flat array (flat + offset), `count` elements; file: the same elements in the file's order.
void to_file_order(const Parameter& parameter, const float* values, float* file);
void from_file_order(const Parameter& parameter, const float* file, float* values);

class ParameterTable {
  public:
    /// Appends a tensor and gives its number. `flattened`: of a dense weight whose inputs are a flattened map of this
    /// shape.
    int add(std::string name, std::vector<int64_t> shape, Initial initial, SampleShape flattened = {});
    const std::vector<Parameter>& all() const { return parameters_; }
    const Parameter& operator[](int i) const { return parameters_[static_cast<std::size_t>(i)]; }
    /// Elements of the flat arrays: gaps between tensors included, none after the last.
    int64_t flat_elements() const { return flat_; }
    int64_t trainable() const;  // without gaps: what "parameters" means
    /// Writes the initial weights: a function of (seed, parameter name, element of the file). Gaps get 0.
    void initialise(uint64_t seed, std::span<float> flat, ThreadPool& pool) const;

  private:
    std::vector<Parameter> parameters_;
    int64_t flat_ = 0;
};

}  // namespace lockstep

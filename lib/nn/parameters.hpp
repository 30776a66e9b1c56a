// The trainable tensors of a network, in model order, and where each lies in the flat arrays (weights, gradients,
// slots). Behind them the array of the weights, and it alone, has the buffers: what training leaves without a gradient,
// the running values of batch norm.
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

/// Initial values: normal(0, sd) by Box-Muller in fp64 rounded once, the same drawn again where beyond two deviations,
/// or a constant.
struct Initial {
    enum class Kind { kNormal, kTruncated, kConstant } kind = Kind::kConstant;
    double value = 0;  // standard deviation (truncated: before the cut), or the constant
};

struct Parameter {
    std::string name;            // PyTorch's: "fc1.weight", "conv1.bias"
    std::vector<int64_t> shape;  // PyTorch's: [out, in], [out, in, kh, kw], [out]
    int64_t count = 0;           // elements
    int64_t offset = 0;          // first element in the flat arrays; a multiple of 16 (64 bytes)
    Initial initial;
    SampleShape flattened{};  // of a dense weight behind a spatial map: the map's shape; else 1x1x1
    bool trainable = true;    // else a buffer

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
    /// Appends the buffers of a batch norm, "<layer>.running_mean" (zeros) and right behind it "<layer>.running_var"
    /// (ones).
    void add_running(const std::string& layer, int64_t channels);

    /// The trainable ones.
    const std::vector<Parameter>& all() const { return parameters_; }
    const Parameter& operator[](int i) const { return parameters_[static_cast<std::size_t>(i)]; }
    /// All tensors of the weights, in model order: buffers stand behind the parameters of their layer, though they lie
    /// at the end.
    const std::vector<Parameter>& stored() const { return stored_; }
    /// The same in the order in which they lie: the trainable ones, then the buffers.
    const std::vector<Parameter>& placed() const { return placed_; }
    /// Elements of the flat arrays: gaps between tensors included, none after the last. Buffers lie behind.
    int64_t flat_elements() const { return flat_; }
    /// Elements of the weights, buffers included.
    int64_t stored_elements() const { return buffers_ == 0 ? flat_ : buffers_begin() + buffers_; }
    int64_t trainable() const;  // without gaps: what "parameters" means
    /// Writes the initial weights and buffers (stored_elements() of them): a function of (seed, parameter name, element
    /// of the file). Gaps get 0.
    void initialise(uint64_t seed, std::span<float> flat, ThreadPool& pool) const;

  private:
    int64_t buffers_begin() const;
    void move_buffers();

    std::vector<Parameter> parameters_, stored_, placed_;
    int64_t flat_ = 0;
    int64_t buffers_ = 0;  // elements
};

}  // namespace lockstep

#include "nn/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/fixed_math.hpp"
#include "core/philox.hpp"

namespace lockstep {
namespace {

constexpr int64_t kAlignment = 16;  // elements: every tensor starts on a 64-byte border

int64_t on_border(int64_t elements) {
    return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

/// Normal values of elements 4*block … 4*block+3 of a stream: two Box-Muller pairs from the four 32-bit words.
/// u1 lies in (0, 1], so that the logarithm is finite and |z| <= sqrt(64 log 2) = 6.66.
void four_normals(const RandomStream& stream, uint64_t block, double out[4]) {
    constexpr double kTwoPi = 6.283185307179586476925;
    constexpr double kUnit = 0x1p-32;
    const PhiloxCounter bits = stream.block(block);
    for (std::size_t pair = 0; pair < 2; ++pair) {
        const double u1 = (static_cast<double>(bits[2 * pair]) + 1.0) * kUnit;
        const double u2 = static_cast<double>(bits[2 * pair + 1]) * kUnit;
        const double radius = std::sqrt(-2.0 * log_fixed(u1));
        out[2 * pair] = radius * cos_fixed(kTwoPi * u2);
        out[2 * pair + 1] = radius * sin_fixed(kTwoPi * u2);
    }
}

/// Draws lane by lane again, from the block of the next attempt, until all lie within two deviations. Blocks of
/// attempts do not meet: no tensor has 2^56 of them.
void four_truncated(const RandomStream& stream, uint64_t block, double out[4]) {
    four_normals(stream, block, out);
    for (std::size_t lane = 0; lane < 4; ++lane) {
        for (uint64_t attempt = 1; !(std::abs(out[lane]) <= 2); ++attempt) {
            double again[4];
            four_normals(stream, block | attempt << 56, again);
            out[lane] = again[lane];
        }
    }
}

void write_normals(const Parameter& parameter, uint64_t seed, float* values, ThreadPool& pool) {
    const RandomStream stream(seed, Purpose::kInitialWeights, stream_id(parameter.name));
    const std::vector<int32_t> columns = parameter.file_columns();
    const auto width = static_cast<int64_t>(columns.size());
    const bool truncated = parameter.initial.kind == Initial::Kind::kTruncated;
    pool.run([&](int part, int parts) {
        const IndexRange range = part_of(parameter.count, part, parts, 4);
        for (int64_t first = range.begin; first < range.end; first += 4) {
            double normals[4];
            const auto block = static_cast<uint64_t>(first / 4);
            if (truncated) {
                four_truncated(stream, block, normals);
            } else {
                four_normals(stream, block, normals);
            }
            for (int64_t e = first; e < std::min(first + 4, range.end); ++e) {
                const int64_t at = width == 0 ? e : e / width * width + columns[static_cast<std::size_t>(e % width)];
                values[at] = static_cast<float>(normals[e - first] * parameter.initial.value);
            }
        }
    });
}

}  // namespace

std::vector<int32_t> Parameter::file_columns() const {
    const int64_t places = int64_t{flattened.height} * flattened.width;
    if (places == 1 || flattened.channels == 1) return {};
    std::vector<int32_t> columns;
    columns.reserve(static_cast<std::size_t>(flattened.elements()));
    for (int64_t c = 0; c < flattened.channels; ++c) {
        for (int64_t p = 0; p < places; ++p) columns.push_back(static_cast<int32_t>(p * flattened.channels + c));
    }
    return columns;
}

void to_file_order(const Parameter& parameter, const float* values, float* file) {
    const std::vector<int32_t> columns = parameter.file_columns();
    if (columns.empty()) {
        std::memcpy(file, values, static_cast<std::size_t>(parameter.count) * sizeof(float));
        return;
    }
    const auto width = static_cast<int64_t>(columns.size());
    for (int64_t row = 0; row < parameter.count; row += width) {
        for (std::size_t j = 0; j < columns.size(); ++j) file[row + static_cast<int64_t>(j)] = values[row + columns[j]];
    }
}

void from_file_order(const Parameter& parameter, const float* file, float* values) {
    const std::vector<int32_t> columns = parameter.file_columns();
    if (columns.empty()) {
        std::memcpy(values, file, static_cast<std::size_t>(parameter.count) * sizeof(float));
        return;
    }
    const auto width = static_cast<int64_t>(columns.size());
    for (int64_t row = 0; row < parameter.count; row += width) {
        for (std::size_t j = 0; j < columns.size(); ++j) values[row + columns[j]] = file[row + static_cast<int64_t>(j)];
    }
}

int ParameterTable::add(std::string name, std::vector<int64_t> shape, Initial initial, SampleShape flattened) {
    Parameter parameter;
    parameter.count = 1;
    for (const int64_t extent : shape) parameter.count *= extent;
    parameter.name = std::move(name);
    parameter.shape = std::move(shape);
    parameter.initial = initial;
    parameter.flattened = flattened;
    parameter.offset = on_border(flat_);
    flat_ = parameter.offset + parameter.count;
    stored_.push_back(parameter);
    parameters_.push_back(std::move(parameter));
    move_buffers();
    return static_cast<int>(parameters_.size()) - 1;
}

void ParameterTable::add_running(const std::string& layer, int64_t channels) {
    const auto append = [&](const char* name, double initial) {
        Parameter& buffer = stored_.emplace_back();
        buffer.name = layer + name;
        buffer.shape = {channels};
        buffer.count = channels;
        buffer.initial = {Initial::Kind::kConstant, initial};
        buffer.trainable = false;
    };
    append(".running_mean", 0);
    append(".running_var", 1);
    move_buffers();
}

int64_t ParameterTable::buffers_begin() const {
    return on_border(flat_);
}

/// Behind the last parameter so far; the means of each layer on a border, the variances right behind them.
void ParameterTable::move_buffers() {
    const int64_t begin = buffers_begin();
    buffers_ = 0;
    placed_ = parameters_;
    bool mean = true;
    for (Parameter& tensor : stored_) {
        if (tensor.trainable) continue;
        if (mean) buffers_ = on_border(buffers_);
        tensor.offset = begin + buffers_;
        buffers_ += tensor.count;
        placed_.push_back(tensor);
        mean = !mean;
    }
}

int64_t ParameterTable::trainable() const {
    int64_t sum = 0;
    for (const Parameter& parameter : parameters_) sum += parameter.count;
    return sum;
}

void ParameterTable::initialise(uint64_t seed, std::span<float> flat, ThreadPool& pool) const {
    if (static_cast<int64_t>(flat.size()) != stored_elements()) {
        fail(ErrorKind::kRuntime, "initial weights: the array holds {} elements, the model {}", flat.size(),
             stored_elements());
    }
    std::fill(flat.begin(), flat.end(), 0.0F);  // the gaps
    for (const Parameter& parameter : stored_) {
        float* const values = flat.data() + parameter.offset;
        if (parameter.initial.kind != Initial::Kind::kConstant) {
            write_normals(parameter, seed, values, pool);
        } else {
            std::fill_n(values, parameter.count, static_cast<float>(parameter.initial.value));
        }
    }
}

}  // namespace lockstep

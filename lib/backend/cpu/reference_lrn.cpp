// The definition of local response normalisation: see reference_norm.hpp.
#include <algorithm>
#include <cmath>

#include "backend/cpu/reference_norm.hpp"
#include "core/fixed_math.hpp"

namespace lockstep::reference {
namespace {

/// The channels at most `radius` from channel c: [begin, end).
struct Window {
    int begin, end;
    Window(const LrnShape& shape, int c)
        : begin(c > shape.radius ? c - shape.radius : 0),
          end(shape.radius < shape.channels - c ? c + shape.radius + 1 : shape.channels) {}
};

struct Power {
    float base, value;  // d, d^-beta
};

Power power_of(const LrnShape& shape, const float* x, int c) {
    const Window window(shape, c);
    float squares = 0;
    for (int j = window.begin; j < window.end; ++j) squares = std::fma(x[j], x[j], squares);
    const float base = std::fma(shape.alpha, squares, shape.bias);
    return {base, exp_fixed(-shape.beta * log_fixed(base))};
}

}  // namespace

void lrn(const LrnShape& shape, int64_t rows, const float* x, float* y) {
    for (int64_t r = 0; r < rows; ++r, x += shape.channels, y += shape.channels) {
        for (int c = 0; c < shape.channels; ++c) y[c] = x[c] * power_of(shape, x, c).value;
    }
}

void lrn_backward(const LrnShape& shape, int64_t rows, const float* x, const float* dy, float* dx) {
    const float k = 2.0F * shape.alpha * shape.beta;
    for (int64_t r = 0; r < rows; ++r, x += shape.channels, dy += shape.channels, dx += shape.channels) {
        for (int c = 0; c < shape.channels; ++c) {
            const Window window(shape, c);
            float sum = 0;
            for (int j = window.begin; j < window.end; ++j) {
                const Power power = power_of(shape, x, j);
                sum = sum + (dy[j] * x[j]) * (power.value / power.base);
            }
            dx[c] = std::fma(-(k * x[c]), sum, dy[c] * power_of(shape, x, c).value);
        }
    }
}

}  // namespace lockstep::reference

#include "backend/cpu/reference_norm.hpp"

#include <algorithm>

#include "backend/cpu/fma_loops.hpp"

namespace lockstep::reference {
namespace {

/// total = total + block, for the blocks of `rows` rows in order: term(row, chain) is a chain's next value.
template <class Term>
LOCKSTEP_ALWAYS_INLINE inline void add_blocks(int64_t rows, float& total, Term term) {
    for (int64_t begin = 0; begin < rows; begin += kSumBlockRows) {
        const int64_t end = std::min(begin + kSumBlockRows, rows);
        float chain[4] = {};
        for (int64_t r = begin; r < end; ++r) chain[r % 4] = term(r, chain[r % 4]);
        total = total + ((chain[0] + chain[1]) + (chain[2] + chain[3]));
    }
}

/// What a relu with output y[at] lets pass; all of it where there is none.
LOCKSTEP_ALWAYS_INLINE inline float masked(const float* dy, const float* y, int64_t at) {
    return y == nullptr || y[at] > 0.0F ? dy[at] : 0.0F;
}

}  // namespace

void add_sums(const NormSlice& slice, const float* x, float* sums) {
    for (int c = 0; c < slice.channels; ++c) {
        add_blocks(slice.rows, sums[c], [&](int64_t r, float chain) { return chain + x[r * slice.stride + c]; });
    }
}

void add_squares(const NormSlice& slice, const float* x, const float* sums, float count, float* squares) {
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int c = 0; c < slice.channels; ++c) {
            const float mean = sums[c] / count;
            add_blocks(slice.rows, squares[c], [&](int64_t r, float chain) LOCKSTEP_ALWAYS_INLINE {
                const float d = x[r * slice.stride + c] - mean;
                return std::fma(d, d, chain);
            });
        }
    });
}

void add_gradient_sums(const NormSlice& slice, const float* x, const float* mean, const float* inverse, const float* dy,
                       const float* masked_by, float* xhat_sums, float* dy_sums) {
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int c = 0; c < slice.channels; ++c) {
            add_blocks(slice.rows, xhat_sums[c], [&](int64_t r, float chain) LOCKSTEP_ALWAYS_INLINE {
                const int64_t at = r * slice.stride + c;
                return std::fma(masked(dy, masked_by, at), (x[at] - mean[c]) * inverse[c], chain);
            });
            add_blocks(slice.rows, dy_sums[c], [&](int64_t r, float chain) LOCKSTEP_ALWAYS_INLINE {
                return chain + masked(dy, masked_by, r * slice.stride + c);
            });
        }
    });
}

void batch_moments(int64_t rows, int channels, const float* x, float* moments) {
    std::fill_n(moments, 2 * channels, 0.0F);
    const NormSlice all{rows, channels, channels};
    add_sums(all, x, moments);
    add_squares(all, x, moments, static_cast<float>(rows), moments + channels);
}

void merge_moments(int channels, int64_t left_rows, int64_t right_rows, const float* left, const float* right,
                   float* into) {
    const auto left_count = static_cast<float>(left_rows), right_count = static_cast<float>(right_rows);
    const auto factor = static_cast<float>(static_cast<double>(left_rows) * static_cast<double>(right_rows) /
                                           static_cast<double>(left_rows + right_rows));
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int c = 0, q = channels; c < channels; ++c, ++q) {
            const float d = right[c] / right_count - left[c] / left_count;
            const float sum = left[c] + right[c];
            const float squares = std::fma(d * d, factor, left[q] + right[q]);
            into[c] = sum;
            into[q] = squares;
        }
    });
}

void batch_statistics(int64_t rows, int channels, float epsilon, const float* moments, float* statistics) {
    const auto count = static_cast<float>(rows);
    for (int c = 0, q = channels; c < channels; ++c, ++q) {
        statistics[c] = moments[c] / count;
        statistics[q] = 1.0F / std::sqrt(moments[q] / count + epsilon);
    }
}

void running_statistics(int channels, float epsilon, const float* running, float* statistics) {
    for (int c = 0, v = channels; c < channels; ++c, ++v) {
        statistics[c] = running[c];
        statistics[v] = 1.0F / std::sqrt(running[v] + epsilon);
    }
}

void update_running(int64_t rows, int channels, float momentum, float one_minus_momentum, bool unbiased,
                    const float* moments, float* running) {
    const auto count = static_cast<float>(rows);
    const auto variance_count = static_cast<float>(unbiased && rows > 1 ? rows - 1 : rows);
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int c = 0, v = channels; c < channels; ++c, ++v) {
            running[c] = std::fma(momentum, running[c], one_minus_momentum * (moments[c] / count));
            running[v] = std::fma(momentum, running[v], one_minus_momentum * (moments[v] / variance_count));
        }
    });
}

void batch_norm(int64_t rows, int channels, bool relu, const float* x, const float* statistics, const float* gamma,
                const float* beta, float* y) {
    const float *mean = statistics, *inverse = statistics + channels;
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
            for (int c = 0; c < channels; ++c) {
                const float normal = std::fma(gamma[c], (x[c] - mean[c]) * inverse[c], beta[c]);
                y[c] = relu && normal <= 0.0F ? 0.0F : normal;
            }
        }
    });
}

void batch_norm_sums(int64_t rows, int channels, const float* x, const float* statistics, const float* dy,
                     const float* masked_by, float* sums) {
    std::fill_n(sums, 2 * channels, 0.0F);
    add_gradient_sums({rows, channels, channels}, x, statistics, statistics + channels, dy, masked_by, sums,
                      sums + channels);
}

void batch_norm_backward(int64_t rows, int channels, int64_t count, const float* x, const float* statistics,
                         const float* gamma, const float* sums, const float* dy, const float* masked_by, float* dx) {
    const float *mean = statistics, *inverse = statistics + channels;
    const auto divisor = static_cast<float>(count);
    run_with_fma([&]() LOCKSTEP_ALWAYS_INLINE {
        for (int c = 0; c < channels; ++c) {
            const float scale = gamma[c] * inverse[c];
            const float k = sums[c] / divisor, b = sums[channels + c] / divisor;
            for (int64_t r = 0, at = c; r < rows; ++r, at += channels) {
                const float xhat = (x[at] - mean[c]) * inverse[c];
                dx[at] = scale * std::fma(-xhat, k, masked(dy, masked_by, at) - b);
            }
        }
    });
}

}  // namespace lockstep::reference

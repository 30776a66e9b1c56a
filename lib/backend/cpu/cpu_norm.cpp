// What normalises, on the threads of a stream. A block of 256 rows is summed by one thread; where there are too
// few blocks, threads take channels.
#include <algorithm>

#include "backend/cpu/cpu_operations.hpp"
#include "backend/cpu/reference_norm.hpp"
#include "backend/cpu/slices.hpp"

namespace lockstep {
namespace {

using reference::kSumBlockRows;

constexpr int64_t kBlockSums = int64_t{1} << 16;  // floats for the sums of blocks before they are added, in order

/// sums [arrays][channels] = the sums of all blocks. add(first row, rows, first channel, channels, to) adds those of a
/// slice to the totals `to`, laid out like sums. `scratch`: kBlockSums floats.
template <class Add>
void sum_blocks(CpuStream& stream, int64_t rows, int channels, int arrays, std::span<float> scratch, float* sums,
                const Add& add) {
    const int64_t totals = int64_t{arrays} * channels;
    std::fill_n(sums, totals, 0.0F);
    const int64_t blocks = (rows + kSumBlockRows - 1) / kSumBlockRows;
    const int64_t round = static_cast<int64_t>(scratch.size()) / totals;
    const bool worth = rows * totals >= kElementsWorthThreads;
    if (!worth || stream.parts() == 1 || blocks < 2 * stream.parts() || round < 2 * stream.parts()) {
        for_slices(stream, channels, kLineFloats, worth, [&](int64_t begin, int64_t end) {
            add(int64_t{0}, rows, static_cast<int>(begin), static_cast<int>(end - begin), sums);
        });
        return;
    }
    for (int64_t first = 0; first < blocks; first += round) {
        const int64_t count = std::min(round, blocks - first);
        stream.parallel([&](int part, int parts) {
            const IndexRange range = part_of(count, part, parts);
            for (int64_t block = range.begin; block < range.end; ++block) {
                float* to = scratch.data() + block * totals;
                std::fill_n(to, totals, 0.0F);
                const int64_t row = (first + block) * kSumBlockRows;
                add(row, std::min(kSumBlockRows, rows - row), 0, channels, to);
            }
        });
        for (int64_t block = 0; block < count; ++block) {
            const float* from = scratch.data() + block * totals;
            for (int64_t i = 0; i < totals; ++i) sums[i] = sums[i] + from[i];
        }
    }
}

/// body(first row, rows) on a slice of the rows a thread.
template <class Body>
void for_rows(CpuStream& stream, int64_t rows, int channels, const Body& body) {
    for_slices(stream, rows, 1, rows * channels >= kElementsWorthThreads,
               [&](int64_t begin, int64_t end) { body(begin, end - begin); });
}

const float* at_or_null(const float* p, int64_t i) {
    return p == nullptr ? nullptr : p + i;
}

}  // namespace

CpuOperations::CpuOperations(Isa isa, int threads)
    : context_(isa, threads),
      norm_(norm_kernels(isa)),
      lrn_(lrn_kernels(isa)),
      softmax_(softmax_kernels(isa)),
      loss_(loss_kernels(isa)),
      block_sums_(threads > 1 ? kBlockSums : 0) {}

void CpuOperations::batch_moments(Stream& stream, int64_t rows, int channels, const float* x, float* moments) {
    CpuStream& cpu = cpu_stream(stream);
    const auto slice_of = [&](int64_t count, int width) { return NormSlice{count, channels, width}; };
    sum_blocks(cpu, rows, channels, 1, block_sums_, moments,
               [&](int64_t row, int64_t count, int c, int width, float* to) {
                   norm_.add_sums(slice_of(count, width), x + row * channels + c, to + c);
               });
    sum_blocks(cpu, rows, channels, 1, block_sums_, moments + channels,
               [&](int64_t row, int64_t count, int c, int width, float* to) {
                   norm_.add_squares(slice_of(count, width), x + row * channels + c, moments + c,
                                     static_cast<float>(rows), to + c);
               });
}

// A handful of operations a channel: the definition itself is fast enough.
void CpuOperations::merge_moments(Stream&, int channels, int64_t left_rows, int64_t right_rows, const float* left,
                                  const float* right, float* into) {
    reference::merge_moments(channels, left_rows, right_rows, left, right, into);
}
void CpuOperations::batch_statistics(Stream&, int64_t rows, int channels, float epsilon, const float* moments,
                                     float* statistics) {
    reference::batch_statistics(rows, channels, epsilon, moments, statistics);
}
void CpuOperations::running_statistics(Stream&, int channels, float epsilon, const float* running, float* statistics) {
    reference::running_statistics(channels, epsilon, running, statistics);
}
void CpuOperations::update_running(Stream&, int64_t rows, int channels, float momentum, float one_minus_momentum,
                                   bool unbiased, const float* moments, float* running) {
    reference::update_running(rows, channels, momentum, one_minus_momentum, unbiased, moments, running);
}

void CpuOperations::batch_norm(Stream& stream, int64_t rows, int channels, bool relu, const float* x,
                               const float* statistics, const float* gamma, const float* beta, float* y) {
    for_rows(cpu_stream(stream), rows, channels, [&](int64_t row, int64_t count) {
        const int64_t at = row * channels;
        norm_.batch_norm(count, channels, relu, x + at, statistics, gamma, beta, y + at);
    });
}

void CpuOperations::batch_norm_sums(Stream& stream, int64_t rows, int channels, const float* x, const float* statistics,
                                    const float* dy, const float* masked_by, float* sums) {
    sum_blocks(cpu_stream(stream), rows, channels, 2, block_sums_, sums,
               [&](int64_t row, int64_t count, int c, int width, float* to) {
                   const int64_t at = row * channels + c;
                   norm_.add_gradient_sums({count, channels, width}, x + at, statistics + c, statistics + channels + c,
                                           dy + at, at_or_null(masked_by, at), to + c, to + channels + c);
               });
}

void CpuOperations::batch_norm_backward(Stream& stream, int64_t rows, int channels, int64_t count, const float* x,
                                        const float* statistics, const float* gamma, const float* sums, const float* dy,
                                        const float* masked_by, float* dx) {
    for_rows(cpu_stream(stream), rows, channels, [&](int64_t row, int64_t slice_rows) {
        const int64_t at = row * channels;
        norm_.batch_norm_backward(slice_rows, channels, count, x + at, statistics, gamma, sums, dy + at,
                                  at_or_null(masked_by, at), dx + at);
    });
}

void CpuOperations::lrn(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, float* y) {
    for_rows(cpu_stream(stream), rows, shape.channels, [&](int64_t row, int64_t count) {
        lrn_.lrn(shape, count, x + row * shape.channels, y + row * shape.channels);
    });
}

void CpuOperations::lrn_backward(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, const float* dy,
                                 float* dx) {
    for_rows(cpu_stream(stream), rows, shape.channels, [&](int64_t row, int64_t count) {
        const int64_t at = row * shape.channels;
        lrn_.lrn_backward(shape, count, x + at, dy + at, dx + at);
    });
}

}  // namespace lockstep

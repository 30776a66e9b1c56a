// Losses on the threads of a stream: a slice of the rows a thread.
#include "backend/cpu/cpu_operations.hpp"
#include "backend/cpu/reference_loss.hpp"
#include "backend/cpu/slices.hpp"

namespace lockstep {
namespace {

constexpr int64_t kExponentialsWorthThreads = kElementsWorthThreads / 8;

float* at_or_null(float* p, int64_t i) {
    return p == nullptr ? nullptr : p + i;
}

}  // namespace

void CpuOperations::smoothed_cross_entropy(Stream& stream, int rows, int classes, float smoothing, const float* logits,
                                           const int32_t* labels, float* loss, float* dlogits) {
    const bool worth = int64_t{rows} * classes >= kExponentialsWorthThreads;
    for_slices(cpu_stream(stream), rows, 1, worth, [&](int64_t begin, int64_t end) {
        softmax_.smoothed_cross_entropy(static_cast<int>(end - begin), classes, smoothing, logits + begin * classes,
                                        labels + begin, loss + begin, at_or_null(dlogits, begin * classes));
    });
}

void CpuOperations::sigmoid_cross_entropy(Stream& stream, int rows, const float* logits, const int32_t* labels,
                                          float* loss, float* dlogits) {
    const bool worth = rows >= kExponentialsWorthThreads;
    for_slices(cpu_stream(stream), rows, kLineFloats, worth, [&](int64_t begin, int64_t end) {
        loss_.sigmoid_cross_entropy(static_cast<int>(end - begin), logits + begin, labels + begin, loss + begin,
                                    at_or_null(dlogits, begin));
    });
}

void CpuOperations::sigmoid(Stream& stream, int64_t n, const float* x, float* y) {
    for_slices(cpu_stream(stream), n, kLineFloats, n >= kExponentialsWorthThreads,
               [&](int64_t begin, int64_t end) { loss_.sigmoid(end - begin, x + begin, y + begin); });
}

// Four operations an element and no branch: the compiler's loop is as good as one of our own.
void CpuOperations::sigmoid_backward(Stream& stream, int64_t n, const float* y, const float* dy, float* dx) {
    for_slices(cpu_stream(stream), n, kLineFloats, n >= kElementsWorthThreads, [&](int64_t begin, int64_t end) {
        reference::sigmoid_backward(end - begin, y + begin, dy + begin, dx + begin);
    });
}

void CpuOperations::squared_error(Stream&, int rows, const float* predictions, const float* targets, float* loss,
                                  float* dpredictions) {
    reference::squared_error(rows, predictions, targets, loss, dpredictions);
}

}  // namespace lockstep

// Operations that a device lacks are refused by name; a backend overrides what it has.
#include "backend/backend.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

[[noreturn]] void lacks(const char* what) {
    fail(ErrorKind::kRuntime, "the device has no {}", what);
}

}  // namespace

void NormOperations::batch_moments(Stream&, int64_t, int, const float*, float*) {
    lacks("batch norm");
}
void NormOperations::merge_moments(Stream&, int, int64_t, int64_t, const float*, const float*, float*) {
    lacks("batch norm");
}
void NormOperations::batch_statistics(Stream&, int64_t, int, float, const float*, float*) {
    lacks("batch norm");
}
void NormOperations::running_statistics(Stream&, int, float, const float*, float*) {
    lacks("batch norm");
}
void NormOperations::update_running(Stream&, int64_t, int, float, float, bool, const float*, float*) {
    lacks("batch norm");
}
void NormOperations::batch_norm(Stream&, int64_t, int, bool, const float*, const float*, const float*, const float*,
                                float*) {
    lacks("batch norm");
}
void NormOperations::batch_norm_sums(Stream&, int64_t, int, const float*, const float*, const float*, const float*,
                                     float*) {
    lacks("batch norm");
}
void NormOperations::batch_norm_backward(Stream&, int64_t, int, int64_t, const float*, const float*, const float*,
                                         const float*, const float*, const float*, float*) {
    lacks("batch norm");
}
void NormOperations::lrn(Stream&, const LrnShape&, int64_t, const float*, float*) {
    lacks("local response normalisation");
}
void NormOperations::lrn_backward(Stream&, const LrnShape&, int64_t, const float*, const float*, float*) {
    lacks("local response normalisation");
}

void LossOperations::smoothed_cross_entropy(Stream&, int, int, float, const float*, const int32_t*, float*, float*) {
    lacks("cross entropy with label smoothing");
}
void LossOperations::sigmoid_cross_entropy(Stream&, int, const float*, const int32_t*, float*, float*) {
    lacks("sigmoid cross entropy");
}
void LossOperations::sigmoid(Stream&, int64_t, const float*, float*) {
    lacks("sigmoid");
}
void LossOperations::sigmoid_backward(Stream&, int64_t, const float*, const float*, float*) {
    lacks("sigmoid");
}
void LossOperations::squared_error(Stream&, int, const float*, const float*, float*, float*) {
    lacks("squared error");
}

std::unique_ptr<Expand> FeatureOperations::plan_expand(int, std::span<const ExpandColumn>) {
    lacks("one-hot columns");
}
void FeatureOperations::copy_part(Stream&, int64_t, int, const float*, RowPart, float*, RowPart) {
    lacks("copy of channels");
}
void FeatureOperations::fill(Stream&, int64_t, float, float*) {
    lacks("fill");
}

}  // namespace lockstep

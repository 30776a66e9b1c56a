// The GPU backend: operations are launches on CUDA streams, shards go to streams of their own, and the host waits only
// where it must know a number. In defined arithmetic every operation gives the bits of the CPU backend.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/dropout_mask.hpp"
#include "core/version.hpp"
#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/backend/fold_programs.hpp"
#include "cuda/backend/gradient_checks.hpp"
#include "cuda/backend/host_copies.hpp"
#include "cuda/backend/nvtx_range.hpp"
#include "cuda/kernels/dropout.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/softmax.h"
#include "cuda/kernels/update.h"

namespace lockstep {

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(const CudaOptions& options)
        : context_(options), copies_(context_), folds_(context_, copies_), checks_(context_) {
        for (int i = 0; i < context_.streams(); ++i) ended_.push_back(std::make_unique<CudaEvent>());
    }
    ~CudaBackend() override { cudaDeviceSynchronize(); }  // nothing queued may outlive the memory it works on
    CudaContext& context() { return context_; }

    std::string name() const override;
    std::string fingerprint() const override {
        return context_.options().vendor ? vendor_fingerprint(context_) : kNumericFingerprint;
    }
    std::vector<std::string> details() const override { return vendor_algorithms(context_); }

    std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return context_.allocate(bytes); }
    // What cudaMalloc gives, and the most that the libraries' choice of an algorithm knows of.
    std::size_t alignment() const override { return 256; }
    std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override { return context_.allocate_host(bytes); }
    bool host_sees_device() const override { return false; }
    void upload(Stream& stream, const void* host, void* device, std::size_t bytes) override {
        copies_.upload(cuda_stream(stream), host, device, bytes);
    }
    void download(Stream& stream, const void* device, void* host, std::size_t bytes) override {
        copies_.download(cuda_stream(stream), device, host, bytes);
    }
    void wait(Stream& stream) override { CUDA_CHECK(cudaStreamSynchronize(cuda_stream(stream))); }
    void synchronize() override;

    Stream& main() override { return context_.main(); }
    Stream& communication() override { return context_.communication(); }
    void order(Stream& before, Stream& after) override;
    // A device's caches are small and its width is large: only whole batches fill it.
    int64_t piece_bytes() const override { return std::numeric_limits<int64_t>::max(); }
    int streams() const override { return context_.streams(); }
    std::vector<ShardRange> split_items(int count) const override;
    void for_each_range(std::span<const ShardRange> ranges, FunctionRef<void(Stream&, int)> body) override;

    std::unique_ptr<Dense> plan_dense(int in, int out, const FoldProgram& fold, bool relu) override {
        return (context_.options().vendor ? make_vendor_dense : make_cuda_dense)(context_, in, out, fold, relu);
    }
    std::unique_ptr<Conv> plan_conv(const ConvShape& shape, bool relu, bool backward_data) override {
        return (context_.options().vendor ? make_vendor_conv : make_cuda_conv)(context_, shape, relu, backward_data);
    }
    std::unique_ptr<Pool> plan_pool(const PoolShape& shape) override { return make_cuda_pool(context_, shape); }

    void relu(Stream& stream, int64_t n, const float* x, float* y) override {
        launch_relu(n, x, y, cuda_stream(stream));
    }
    void relu_backward(Stream& stream, int64_t n, const float* y, float* dy) override {
        launch_relu_backward(n, y, dy, cuda_stream(stream));
    }
    void add(Stream& stream, int64_t n, const float* left, const float* right, float* dst) override {
        launch_add(n, left, right, dst, cuda_stream(stream));
    }
    void scale(Stream& stream, int64_t n, float factor, float* x) override {
        launch_scale(n, factor, x, cuda_stream(stream));
    }
    void gather_columns(Stream& stream, int64_t rows, int width, const int32_t* columns, const float* from,
                        float* to) override {
        launch_gather_columns(rows, width, columns, from, to, cuda_stream(stream));
    }
    void dropout(Stream& stream, const DropoutKey& key, int rows, int64_t elements, const int64_t* positions,
                 const float* x, float* y) override {
        launch_dropout(dropout_mask(key), rows, elements, positions, x, y, cuda_stream(stream));
    }
    void softmax_cross_entropy(Stream& stream, int rows, int classes, const float* logits, const int32_t* labels,
                               float* loss, float* dlogits) override {
        const NvtxRange range("loss");
        launch_softmax_cross_entropy(rows, classes, logits, labels, loss, dlogits, cuda_stream(stream));
    }
    void softmax(Stream& stream, int rows, int classes, const float* logits, float* probabilities) override {
        launch_softmax(rows, classes, logits, probabilities, cuda_stream(stream));
    }
    void plan_fold_rows(const FoldProgram& fold) override { folds_.find(fold); }
    void fold_rows(Stream& stream, const FoldProgram& fold, int columns, const float* x,
                   std::span<float* const> out) override;

    bool all_finite(Stream& stream, int64_t n, const float* x) override {
        const NvtxRange range("finite check");
        return checks_.all_finite(cuda_stream(stream), n, x);
    }
    double square_sum(Stream& stream, int64_t n, const float* gradient, const float* w, float divisor,
                      float l2) override {
        const NvtxRange range("gradient norm");
        return checks_.square_sum(cuda_stream(stream), n, gradient, w, divisor, l2);
    }
    void update(Stream& stream, const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0,
                float* slot1, float* direction) override {
        launch_update(params, n, gradient, w, slot0, slot1, direction, cuda_stream(stream));
    }

    // cuda_norm.cpp
    void plan_batch_norm(int64_t rows, int channels) override;
    void batch_moments(Stream& stream, int64_t rows, int channels, const float* x, float* moments) override;
    void merge_moments(Stream& stream, int channels, int64_t left_rows, int64_t right_rows, const float* left,
                       const float* right, float* into) override;
    void batch_statistics(Stream& stream, int64_t rows, int channels, float epsilon, const float* moments,
                          float* statistics) override;
    void running_statistics(Stream& stream, int channels, float epsilon, const float* running,
                            float* statistics) override;
    void update_running(Stream& stream, int64_t rows, int channels, float momentum, float one_minus_momentum,
                        bool unbiased, const float* moments, float* running) override;
    void batch_norm(Stream& stream, int64_t rows, int channels, bool relu, const float* x, const float* statistics,
                    const float* gamma, const float* beta, float* y) override;
    void batch_norm_sums(Stream& stream, int64_t rows, int channels, const float* x, const float* statistics,
                         const float* dy, const float* masked_by, float* sums) override;
    void batch_norm_backward(Stream& stream, int64_t rows, int channels, int64_t count, const float* x,
                             const float* statistics, const float* gamma, const float* sums, const float* dy,
                             const float* masked_by, float* dx) override;
    void lrn(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, float* y) override;
    void lrn_backward(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, const float* dy,
                      float* dx) override;

    // cuda_losses.cpp
    void smoothed_cross_entropy(Stream& stream, int rows, int classes, float smoothing, const float* logits,
                                const int32_t* labels, float* loss, float* dlogits) override;
    void sigmoid_cross_entropy(Stream& stream, int rows, const float* logits, const int32_t* labels, float* loss,
                               float* dlogits) override;
    void sigmoid(Stream& stream, int64_t n, const float* x, float* y) override;
    void sigmoid_backward(Stream& stream, int64_t n, const float* y, const float* dy, float* dx) override;
    void squared_error(Stream& stream, int rows, const float* predictions, const float* targets, float* loss,
                       float* dpredictions) override;

    // cuda_features.cpp
    std::unique_ptr<Expand> plan_expand(int in_columns, std::span<const ExpandColumn> columns) override;
    void copy_part(Stream& stream, int64_t rows, int width, const float* from, RowPart from_part, float* to,
                   RowPart to_part) override;
    void fill(Stream& stream, int64_t n, float value, float* x) override;

  private:
    void join(int ranges);
    /// For what an operation leaves behind before its end; grows where a larger shape is met than was planned.
    float* scratch(Stream& stream, int64_t floats);

    CudaContext context_;
    HostCopies copies_;
    FoldPrograms folds_;
    GradientChecks checks_;
    CudaEvent begun_, before_;                       // of for_each_range, of order
    std::vector<std::unique_ptr<CudaEvent>> ended_;  // of for_each_range, one for each stream
};

}  // namespace lockstep

// The GPU backend: operations are launches on CUDA streams, shards go to streams of their own, and the host waits only
// where it must know a number. In defined arithmetic every operation gives the bits of the CPU backend.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backend/dropout_mask.hpp"
#include "core/error.hpp"
#include "core/version.hpp"
#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/backend/fold_programs.hpp"
#include "cuda/backend/gradient_checks.hpp"
#include "cuda/backend/host_copies.hpp"
#include "cuda/backend/nvtx_range.hpp"
#include "cuda/backend/step_graphs.hpp"
#include "cuda/kernels/dropout.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/softmax.h"
#include "cuda/kernels/update.h"

namespace lockstep {
namespace {

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

  private:
    void join(int ranges);

    CudaContext context_;
    HostCopies copies_;
    FoldPrograms folds_;
    GradientChecks checks_;
    CudaEvent begun_, before_;                       // of for_each_range, of order
    std::vector<std::unique_ptr<CudaEvent>> ended_;  // of for_each_range, one for each stream
};

std::string CudaBackend::name() const {
    const cudaDeviceProp& device = context_.properties();
    return fmt::format("cuda {} (compute capability {}.{}), {} stream{}, {} arithmetic", device.name, device.major,
                       device.minor, streams(), streams() == 1 ? "" : "s",
                       context_.options().vendor ? "vendor" : "defined");
}

void CudaBackend::synchronize() {
    const NvtxRange range("synchronize");
    context_.make_current();
    CUDA_CHECK(cudaDeviceSynchronize());
}

void CudaBackend::order(Stream& before, Stream& after) {
    before_.record(cuda_stream(before));
    before_.make_wait(cuda_stream(after));  // holds what was recorded by now: the event may be used again at once
}

std::vector<ShardRange> CudaBackend::split_items(int count) const {
    const int parts = std::clamp(count, 1, streams());
    std::vector<ShardRange> ranges;
    for (int i = 0; i < parts; ++i) {
        ranges.push_back(
            {static_cast<int>(int64_t{count} * i / parts), static_cast<int>(int64_t{count} * (i + 1) / parts)});
    }
    return ranges;
}

void CudaBackend::for_each_range(std::span<const ShardRange> ranges, FunctionRef<void(Stream&, int)> body) {
    const int count = static_cast<int>(ranges.size());
    if (count <= 1) {
        if (count == 1) body(context_.main(), 0);
        return;
    }
    const NvtxRange range("shards");
    begun_.record(context_.main().get());
    for (int i = 0; i < count; ++i) begun_.make_wait(context_.shard(i).get());
    try {
        for (int i = 0; i < count; ++i) body(context_.shard(i), i);
    } catch (...) {
        join(count);
        throw;
    }
    join(count);
}

void CudaBackend::join(int ranges) {
    for (int i = 0; i < ranges; ++i) {
        CudaEvent& ended = *ended_[static_cast<std::size_t>(i)];
        ended.record(context_.shard(i).get());
        ended.make_wait(context_.main().get());
    }
}

void CudaBackend::fold_rows(Stream& stream, const FoldProgram& fold, int columns, const float* x,
                            std::span<float* const> out) {
    const DeviceFold& known = folds_.find(fold);
    for (std::size_t root = 0; root < known.roots.size(); ++root) {
        const FoldRoot leaves = known.roots[root];
        launch_fold_rows(known.device() + leaves.first, leaves.count, fold.rows, columns, x, out[root],
                         cuda_stream(stream));
    }
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
    return std::make_unique<CudaBackend>(options);
}

std::unique_ptr<CudaStepGraphs> make_cuda_step_graphs(Backend& backend) {
    return std::make_unique<CudaStepGraphs>(static_cast<CudaBackend&>(backend).context());
}

}  // namespace lockstep

#include "backend/cpu/cpu_backend.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "backend/cpu/conv.hpp"
#include "backend/cpu/cpu_context.hpp"
#include "backend/cpu/cpu_isa.hpp"
#include "backend/cpu/cpu_operations.hpp"
#include "backend/cpu/dense.hpp"
#include "backend/cpu/kernels.hpp"
#include "backend/cpu/pool_plan.hpp"
#include "backend/cpu/slices.hpp"
#include "core/error.hpp"
#include "core/version.hpp"

namespace lockstep {
namespace {

class CpuBuffer : public Buffer {
  public:
    explicit CpuBuffer(std::size_t bytes) : memory_(bytes) {}
    std::byte* data() override { return memory_.data(); }
    std::size_t bytes() const override { return memory_.bytes(); }

  private:
    CpuMemory memory_;
};

class CpuBackend final : public CpuOperations {
  public:
    CpuBackend(Isa isa, int threads)
        : CpuOperations(isa, threads),
          elementwise_(elementwise_kernels(isa)),
          softmax_(softmax_kernels(isa)),
          dropout_(dropout_kernels(isa)),
          update_(update_kernels(isa)),
          main_(0, &context().pool()) {
        for (int i = 0; i < context().threads(); ++i) single_.emplace_back(i, nullptr);
    }

    std::string name() const override {
        const int threads = context().threads();
        return fmt::format("cpu {}, {} thread{}", isa_name(context().isa()), threads, threads == 1 ? "" : "s");
    }

    std::string fingerprint() const override { return kNumericFingerprint; }

    std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<CpuBuffer>(bytes); }
    std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override { return allocate(bytes); }
    bool host_sees_device() const override { return true; }

    void upload(Stream&, const void* host, void* device, std::size_t bytes) override {
        if (bytes > 0 && host != device) std::memcpy(device, host, bytes);
    }
    void download(Stream&, const void* device, void* host, std::size_t bytes) override {
        if (bytes > 0 && host != device) std::memcpy(host, device, bytes);
    }
    // An operation has ended when its call returns.
    void wait(Stream&) override {}
    void synchronize() override {}

    Stream& main() override { return main_; }
    Stream& communication() override { return main_; }
    void order(Stream&, Stream&) override {}
    int64_t piece_bytes() const override { return int64_t{512} * 1024; }
    int streams() const override { return context().threads(); }
    std::vector<ShardRange> split_items(int count) const override;
    void for_each_range(std::span<const ShardRange> ranges, FunctionRef<void(Stream&, int)> body) override;

    std::unique_ptr<Dense> plan_dense(int in, int out, const FoldProgram& fold, bool relu) override {
        return make_cpu_dense(context(), in, out, fold, relu);
    }
    std::unique_ptr<Conv> plan_conv(const ConvShape& shape, bool relu, bool backward_data) override {
        return make_cpu_conv(context(), shape, relu, backward_data);
    }
    std::unique_ptr<Pool> plan_pool(const PoolShape& shape) override { return make_cpu_pool(context(), shape); }

    void relu(Stream& stream, int64_t n, const float* x, float* y) override {
        for_elements(stream, n,
                     [&](int64_t begin, int64_t end) { elementwise_.relu(end - begin, x + begin, y + begin); });
    }
    void relu_backward(Stream& stream, int64_t n, const float* y, float* dy) override {
        for_elements(stream, n, [&](int64_t begin, int64_t end) {
            elementwise_.relu_backward(end - begin, y + begin, dy + begin);
        });
    }
    void add(Stream& stream, int64_t n, const float* left, const float* right, float* dst) override {
        for_elements(stream, n, [&](int64_t begin, int64_t end) {
            elementwise_.add(end - begin, left + begin, right + begin, dst + begin);
        });
    }
    void scale(Stream& stream, int64_t n, float factor, float* x) override {
        for_elements(stream, n,
                     [&](int64_t begin, int64_t end) { elementwise_.scale(end - begin, factor, x + begin); });
    }
    void gather_columns(Stream& stream, int64_t rows, int width, const int32_t* columns, const float* from,
                        float* to) override;
    void dropout(Stream& stream, const DropoutKey& key, int rows, int64_t elements, const int64_t* positions,
                 const float* x, float* y) override;
    void softmax_cross_entropy(Stream& stream, int rows, int classes, const float* logits, const int32_t* labels,
                               float* loss, float* dlogits) override;
    void softmax(Stream& stream, int rows, int classes, const float* logits, float* probabilities) override;
    void plan_fold_rows(const FoldProgram&) override {}
    void fold_rows(Stream& stream, const FoldProgram& fold, int columns, const float* x,
                   std::span<float* const> out) override;

    bool all_finite(Stream& stream, int64_t n, const float* x) override {
        return surely_below(stream, n, x, std::numeric_limits<float>::infinity());
    }
    bool surely_below(Stream& stream, int64_t n, const float* x, float limit) override;
    double square_sum(Stream& stream, int64_t n, const float* gradient, const float* w, float divisor,
                      float l2) override;
    void update(Stream& stream, const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0,
                float* slot1, float* direction) override {
        const auto at = [](float* slot, int64_t i) { return slot == nullptr ? nullptr : slot + i; };
        for_elements(stream, n, [&](int64_t begin, int64_t end) {
            update_.update(params, end - begin, gradient + begin, w + begin, at(slot0, begin), at(slot1, begin),
                           at(direction, begin));
        });
    }

  private:
    template <class Body>
    void for_elements(Stream& stream, int64_t n, const Body& body) {
        for_slices(cpu_stream(stream), n, kLineFloats, n >= kElementsWorthThreads, body);
    }

    const ElementwiseKernels& elementwise_;
    const SoftmaxKernels& softmax_;
    const DropoutKernels& dropout_;
    const UpdateKernels& update_;
    CpuStream main_;
    std::vector<CpuStream> single_;
    std::array<double, 4096> block_sums_;  // square_sum's on the main stream: 16 Mi elements a round
};

std::vector<ShardRange> CpuBackend::split_items(int count) const {
    const int threads = context().threads();
    const bool even = count > 0 && count % threads == 0;
    if (threads == 1 || !(even || count >= 3 * threads)) return {{0, count}};
    std::vector<ShardRange> ranges;
    for (int i = 0; i < threads; ++i) {
        const IndexRange part = part_of(count, i, threads);
        ranges.push_back({static_cast<int>(part.begin), static_cast<int>(part.end)});
    }
    return ranges;
}

void CpuBackend::for_each_range(std::span<const ShardRange> ranges, FunctionRef<void(Stream&, int)> body) {
    if (ranges.size() <= 1) {
        if (!ranges.empty()) body(main_, 0);
        return;
    }
    const int count = static_cast<int>(ranges.size());
    context().pool().run([&](int part, int parts) {
        for (int i = part; i < count; i += parts) body(single_[static_cast<std::size_t>(part)], i);
    });
}

void CpuBackend::gather_columns(Stream& stream, int64_t rows, int width, const int32_t* columns, const float* from,
                                float* to) {
    const bool worth = rows * width >= kElementsWorthThreads;
    for_slices(cpu_stream(stream), rows, 1, worth, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            for (int j = 0; j < width; ++j) to[r * width + j] = from[r * width + columns[j]];
        }
    });
}

void CpuBackend::dropout(Stream& stream, const DropoutKey& key, int rows, int64_t elements, const int64_t* positions,
                         const float* x, float* y) {
    const DropoutMask mask = dropout_mask(key);
    CpuStream& s = cpu_stream(stream);
    const bool worth = rows * elements >= kElementsWorthThreads / 4;
    if (rows >= s.parts()) {
        for_slices(s, rows, 1, worth, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                dropout_.row(mask, positions[r], 0, elements, x + r * elements, y + r * elements);
            }
        });
        return;
    }
    for_slices(s, elements, kLineFloats, worth, [&](int64_t begin, int64_t end) {
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t at = r * elements + begin;
            dropout_.row(mask, positions[r], begin, end - begin, x + at, y + at);
        }
    });
}

void CpuBackend::softmax_cross_entropy(Stream& stream, int rows, int classes, const float* logits,
                                       const int32_t* labels, float* loss, float* dlogits) {
    const bool worth = int64_t{rows} * classes >= kElementsWorthThreads / 8;
    for_slices(cpu_stream(stream), rows, 1, worth, [&](int64_t begin, int64_t end) {
        const int64_t at = begin * classes;
        softmax_.cross_entropy(static_cast<int>(end - begin), classes, logits + at, labels + begin, loss + begin,
                               dlogits == nullptr ? nullptr : dlogits + at);
    });
}

void CpuBackend::softmax(Stream& stream, int rows, int classes, const float* logits, float* probabilities) {
    const bool worth = int64_t{rows} * classes >= kElementsWorthThreads / 8;
    for_slices(cpu_stream(stream), rows, 1, worth, [&](int64_t begin, int64_t end) {
        const int64_t at = begin * classes;
        softmax_.probabilities(static_cast<int>(end - begin), classes, logits + at, probabilities + at);
    });
}

void CpuBackend::fold_rows(Stream& stream, const FoldProgram& fold, int columns, const float* x,
                           std::span<float* const> out) {
    if (fold.stack > kMaxFoldStack) fail(ErrorKind::kRuntime, "a fold program needs {} values at once", fold.stack);
    const bool worth = int64_t{fold.rows} * columns >= kElementsWorthThreads;
    for_slices(cpu_stream(stream), columns, kLineFloats, worth, [&](int64_t begin, int64_t end) {
        elementwise_.fold_rows(fold, columns, static_cast<int>(begin), static_cast<int>(end), x, out);
    });
}

bool CpuBackend::surely_below(Stream& stream, int64_t n, const float* x, float limit) {
    constexpr int64_t kPiece = int64_t{1} << 18;  // looked at between two looks at what other threads found
    std::atomic<bool> below = true;
    for_elements(stream, n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end && below.load(std::memory_order_relaxed); i += kPiece) {
            if (!elementwise_.all_below(std::min(kPiece, end - i), x + i, limit))
                below.store(false, std::memory_order_relaxed);
        }
    });
    return below.load();
}

double CpuBackend::square_sum(Stream& stream, int64_t n, const float* gradient, const float* w, float divisor,
                              float l2) {
    std::array<double, 32> few;
    CpuStream& s = cpu_stream(stream);
    const bool threads = s.parts() > 1 && n >= kElementsWorthThreads;
    const std::span<double> sums = threads ? std::span<double>(block_sums_) : std::span<double>(few);
    const int64_t round = static_cast<int64_t>(sums.size()) * kSquareBlock;
    double total = 0;
    for (int64_t first = 0; first < n; first += round) {
        const int64_t count = std::min(round, n - first);
        for_slices(s, count, kSquareBlock, threads, [&](int64_t begin, int64_t end) {
            update_.block_square_sums(end - begin, gradient + first + begin, w + first + begin, divisor, l2,
                                      sums.data() + begin / kSquareBlock);
        });
        for (int64_t block = 0; block * kSquareBlock < count; ++block)
            total = total + sums[static_cast<std::size_t>(block)];
    }
    return total;
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
    if (options.threads < 1)
        fail(ErrorKind::kUsage, "device.threads = {}: a backend needs at least 1", options.threads);
    return std::make_unique<CpuBackend>(choose_isa(options.isa, available_isas()), options.threads);
}

}  // namespace lockstep

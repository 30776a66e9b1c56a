// The CPU backend as a device of its own: its memory is out of the host's reach (separate_memory.hpp), its streams run
// late (deferred_streams.hpp), and host memory that a copy is queued into holds NaNs until it is waited for. What works
// on it keeps the rules of a device, and must give the CPU's bits.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/separate_memory_operations.hpp"

namespace lockstep::test {

class SeparateMemoryBackend final : public SeparateMemoryOperations {
  public:
    struct Traits {
        int streams = 2;             // that for_each_range deals to
        bool ignores_order = false;  // broken on purpose: streams do not wait for each other
        std::vector<std::string> details = {};
    };
    explicit SeparateMemoryBackend(std::unique_ptr<Backend> inner)
        : SeparateMemoryBackend(std::move(inner), Traits()) {}
    SeparateMemoryBackend(std::unique_ptr<Backend> inner, const Traits& traits)
        : SeparateMemoryOperations(std::move(inner)), traits_(traits), main_(0), communication_(0) {
        for (int i = 0; i < traits.streams; ++i) shard_streams_.push_back(std::make_unique<DeferredStream>(i));
    }
    ~SeparateMemoryBackend() override { SeparateMemoryBackend::synchronize(); }
    SeparateMemoryBackend(const SeparateMemoryBackend&) = delete;
    SeparateMemoryBackend& operator=(const SeparateMemoryBackend&) = delete;

    SeparateMemory& memory() { return memory_; }

    std::string name() const override { return "separate " + inner_->name(); }
    std::string fingerprint() const override { return inner_->fingerprint(); }
    std::vector<std::string> details() const override { return traits_.details; }
    std::size_t alignment() const override { return 256; }  // a GPU's
    std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
        return std::make_unique<DeviceBuffer>(*this, bytes);
    }
    std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override {
        return std::make_unique<HostBuffer>(*this, bytes);
    }
    bool host_sees_device() const override { return false; }

    void upload(Stream& stream, const void* host, void* device, std::size_t bytes) override {
        queue(stream, [this, host, device, bytes] { std::memcpy(real(device), host, bytes); });
        if (!is_pinned(host)) wait(stream);
    }
    void download(Stream& stream, const void* device, void* host, std::size_t bytes) override {
        if (is_pinned(host)) std::memset(host, 0xff, bytes);
        queue(stream, [this, host, device, bytes] { std::memcpy(host, real(device), bytes); });
        if (!is_pinned(host)) wait(stream);
    }
    void wait(Stream& stream) override { of(stream).run(); }
    void synchronize() override {
        main_.run();
        communication_.run();
        for (const auto& stream : shard_streams_) stream->run();
    }

    Stream& main() override { return main_; }
    Stream& communication() override { return communication_; }
    void order(Stream& before, Stream& after) override {
        if (!traits_.ignores_order) of(after).follow(of(before));
    }
    int64_t piece_bytes() const override { return int64_t{1} << 40; }
    int streams() const override { return static_cast<int>(shard_streams_.size()); }
    std::vector<ShardRange> split_items(int count) const override {
        std::vector<ShardRange> ranges;
        for (int i = 0; i < streams(); ++i) ranges.push_back({count * i / streams(), count * (i + 1) / streams()});
        return ranges;
    }
    void for_each_range(std::span<const ShardRange> ranges, FunctionRef<void(Stream&, int)> body) override {
        for (int i = 0; i < static_cast<int>(ranges.size()); ++i) {
            DeferredStream& stream = *shard_streams_[static_cast<std::size_t>(i)];
            order(main_, stream);
            body(stream, i);
            order(stream, main_);
        }
    }

    std::unique_ptr<Dense> plan_dense(int in, int out, const FoldProgram& fold, bool relu) override {
        return std::make_unique<QueuedDense>(*this, inner_->plan_dense(in, out, fold, relu));
    }
    std::unique_ptr<Conv> plan_conv(const ConvShape& shape, bool relu, bool backward_data) override {
        return std::make_unique<QueuedConv>(*this, inner_->plan_conv(shape, relu, backward_data));
    }
    std::unique_ptr<Pool> plan_pool(const PoolShape& shape) override {
        return std::make_unique<QueuedPool>(*this, inner_->plan_pool(shape));
    }

    void relu(Stream& s, int64_t n, const float* x, float* y) override {
        queue(s, [=, this] { inner_->relu(inner_->main(), n, real(x), real(y)); });
    }
    void relu_backward(Stream& s, int64_t n, const float* y, float* dy) override {
        queue(s, [=, this] { inner_->relu_backward(inner_->main(), n, real(y), real(dy)); });
    }
    void add(Stream& s, int64_t n, const float* left, const float* right, float* dst) override {
        queue(s, [=, this] { inner_->add(inner_->main(), n, real(left), real(right), real(dst)); });
    }
    void scale(Stream& s, int64_t n, float factor, float* x) override {
        queue(s, [=, this] { inner_->scale(inner_->main(), n, factor, real(x)); });
    }
    void gather_columns(Stream& s, int64_t rows, int width, const int32_t* columns, const float* from,
                        float* to) override {
        queue(s,
              [=, this] { inner_->gather_columns(inner_->main(), rows, width, real(columns), real(from), real(to)); });
    }
    void dropout(Stream& s, const DropoutKey& key, int rows, int64_t elements, const int64_t* positions, const float* x,
                 float* y) override {
        queue(s,
              [=, this] { inner_->dropout(inner_->main(), key, rows, elements, real(positions), real(x), real(y)); });
    }
    void softmax_cross_entropy(Stream& s, int rows, int classes, const float* logits, const int32_t* labels,
                               float* loss, float* dlogits) override {
        queue(s, [=, this] {
            inner_->softmax_cross_entropy(inner_->main(), rows, classes, real(logits), real(labels), real(loss),
                                          real(dlogits));
        });
    }
    void softmax(Stream& s, int rows, int classes, const float* logits, float* probabilities) override {
        queue(s, [=, this] { inner_->softmax(inner_->main(), rows, classes, real(logits), real(probabilities)); });
    }
    void plan_fold_rows(const FoldProgram& fold) override { inner_->plan_fold_rows(fold); }
    void fold_rows(Stream& s, const FoldProgram& fold, int columns, const float* x,
                   std::span<float* const> out) override {
        queue(s, [=, this, to = std::vector<float*>(out.begin(), out.end())] {
            inner_->fold_rows(inner_->main(), fold, columns, real(x), real(to));
        });
    }
    bool all_finite(Stream& s, int64_t n, const float* x) override {
        wait(s);
        return inner_->all_finite(inner_->main(), n, real(x));
    }
    double square_sum(Stream& s, int64_t n, const float* gradient, const float* w, float divisor, float l2) override {
        wait(s);
        return inner_->square_sum(inner_->main(), n, real(gradient), real(w), divisor, l2);
    }
    void update(Stream& s, const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0,
                float* slot1, float* direction) override {
        queue(s, [=, this] {
            inner_->update(inner_->main(), params, n, real(gradient), real(w), real(slot0), real(slot1),
                           real(direction));
        });
    }

  private:
    class DeviceBuffer final : public Buffer {
      public:
        DeviceBuffer(SeparateMemoryBackend& backend, std::size_t bytes)
            : backend_(backend), data_(backend.memory_.add(bytes)), bytes_(bytes) {}
        ~DeviceBuffer() override {
            backend_.synchronize();
            backend_.memory_.remove(data_);
        }
        DeviceBuffer(const DeviceBuffer&) = delete;
        DeviceBuffer& operator=(const DeviceBuffer&) = delete;
        std::byte* data() override { return data_; }
        std::size_t bytes() const override { return bytes_; }

      private:
        SeparateMemoryBackend& backend_;
        std::byte* data_;
        std::size_t bytes_;
    };

    class HostBuffer final : public Buffer {
      public:
        HostBuffer(SeparateMemoryBackend& backend, std::size_t bytes)
            : backend_(backend), memory_(backend.inner_->allocate(bytes)) {
            backend.pinned_[memory_->data()] = bytes;
        }
        ~HostBuffer() override {
            backend_.synchronize();
            backend_.pinned_.erase(memory_->data());
        }
        HostBuffer(const HostBuffer&) = delete;
        HostBuffer& operator=(const HostBuffer&) = delete;
        std::byte* data() override { return memory_->data(); }
        std::size_t bytes() const override { return memory_->bytes(); }

      private:
        SeparateMemoryBackend& backend_;
        std::unique_ptr<Buffer> memory_;
    };

    class QueuedDense final : public Dense {
      public:
        QueuedDense(SeparateMemoryBackend& on, std::unique_ptr<Dense> inner) : on_(on), inner_(std::move(inner)) {}
        ~QueuedDense() override { on_.synchronize(); }
        QueuedDense(const QueuedDense&) = delete;
        QueuedDense& operator=(const QueuedDense&) = delete;
        void forward(Stream& s, const float* x, const float* w, const float* bias, float* y) override {
            on_.queue(s, [=, this] {
                inner_->forward(on_.inner_->main(), on_.real(x), on_.real(w), on_.real(bias), on_.real(y));
            });
        }
        void backward_data(Stream& s, const float* dy, const float* w, float* dx) override {
            on_.queue(
                s, [=, this] { inner_->backward_data(on_.inner_->main(), on_.real(dy), on_.real(w), on_.real(dx)); });
        }
        void backward_weights(Stream& s, const float* x, const float* dy, std::span<float* const> dw,
                              std::span<float* const> db) override {
            on_.queue(s, [=, this, to = std::vector<float*>(dw.begin(), dw.end()),
                          bias_to = std::vector<float*>(db.begin(), db.end())] {
                inner_->backward_weights(on_.inner_->main(), on_.real(x), on_.real(dy), on_.real(to),
                                         on_.real(bias_to));
            });
        }

      private:
        SeparateMemoryBackend& on_;
        std::unique_ptr<Dense> inner_;
    };

    class QueuedConv final : public Conv {
      public:
        QueuedConv(SeparateMemoryBackend& on, std::unique_ptr<Conv> inner) : on_(on), inner_(std::move(inner)) {}
        ~QueuedConv() override { on_.synchronize(); }
        QueuedConv(const QueuedConv&) = delete;
        QueuedConv& operator=(const QueuedConv&) = delete;
        void plan_rows(int rows) override {
            on_.synchronize();
            inner_->plan_rows(rows);
        }
        void prepare(Stream& s, const float* w) override {
            on_.queue(s, [=, this] { inner_->prepare(on_.inner_->main(), on_.real(w)); });
        }
        void forward(Stream& s, int rows, const float* x, const float* bias, float* y) override {
            on_.queue(
                s, [=, this] { inner_->forward(on_.inner_->main(), rows, on_.real(x), on_.real(bias), on_.real(y)); });
        }
        void backward_data(Stream& s, int rows, const float* dy, float* dx) override {
            on_.queue(s, [=, this] { inner_->backward_data(on_.inner_->main(), rows, on_.real(dy), on_.real(dx)); });
        }
        int64_t leaf_elements() const override { return inner_->leaf_elements(); }
        void backward_weights(Stream& s, int rows, const float* x, const float* dy, float* leaf) override {
            on_.queue(s, [=, this] {
                inner_->backward_weights(on_.inner_->main(), rows, on_.real(x), on_.real(dy), on_.real(leaf));
            });
        }
        void store_gradient(Stream& s, const float* leaf, float* dw, float* db) override {
            on_.queue(s, [=, this] {
                inner_->store_gradient(on_.inner_->main(), on_.real(leaf), on_.real(dw), on_.real(db));
            });
        }

      private:
        SeparateMemoryBackend& on_;
        std::unique_ptr<Conv> inner_;
    };

    class QueuedPool final : public Pool {
      public:
        QueuedPool(SeparateMemoryBackend& on, std::unique_ptr<Pool> inner) : on_(on), inner_(std::move(inner)) {}
        ~QueuedPool() override { on_.synchronize(); }
        QueuedPool(const QueuedPool&) = delete;
        QueuedPool& operator=(const QueuedPool&) = delete;
        void forward(Stream& s, int rows, const float* x, float* y, uint8_t* taps) override {
            on_.queue(
                s, [=, this] { inner_->forward(on_.inner_->main(), rows, on_.real(x), on_.real(y), on_.real(taps)); });
        }
        void backward(Stream& s, int rows, const float* dy, const uint8_t* taps, const float* masked_by,
                      float* dx) override {
            on_.queue(s, [=, this] {
                inner_->backward(on_.inner_->main(), rows, on_.real(dy), on_.real(taps), on_.real(masked_by),
                                 on_.real(dx));
            });
        }

      private:
        SeparateMemoryBackend& on_;
        std::unique_ptr<Pool> inner_;
    };

    bool is_pinned(const void* host) const {
        const auto* at = static_cast<const std::byte*>(host);
        const auto after = pinned_.upper_bound(at);
        return after != pinned_.begin() && at < std::prev(after)->first + std::prev(after)->second;
    }

    Traits traits_;
    std::map<const std::byte*, std::size_t> pinned_;
    DeferredStream main_, communication_;
    std::vector<std::unique_ptr<DeferredStream>> shard_streams_;
};

}  // namespace lockstep::test

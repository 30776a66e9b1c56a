// The operations of a device with memory of its own that need no plan and belong to norms, losses and features: each is
// queued on its stream, with the CPU's addresses in place of the device's.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backend/deferred_streams.hpp"
#include "backend/separate_memory.hpp"

namespace lockstep::test {

class SeparateMemoryOperations : public Backend {
  public:
    void plan_batch_norm(int64_t rows, int channels) override { inner_->plan_batch_norm(rows, channels); }
    void batch_moments(Stream& s, int64_t rows, int channels, const float* x, float* moments) override {
        queue(s, [=, this] { inner_->batch_moments(inner_->main(), rows, channels, real(x), real(moments)); });
    }
    void merge_moments(Stream& s, int channels, int64_t left_rows, int64_t right_rows, const float* left,
                       const float* right, float* into) override {
        queue(s, [=, this] {
            inner_->merge_moments(inner_->main(), channels, left_rows, right_rows, real(left), real(right), real(into));
        });
    }
    void batch_statistics(Stream& s, int64_t rows, int channels, float epsilon, const float* moments,
                          float* statistics) override {
        queue(s, [=, this] {
            inner_->batch_statistics(inner_->main(), rows, channels, epsilon, real(moments), real(statistics));
        });
    }
    void running_statistics(Stream& s, int channels, float epsilon, const float* running, float* statistics) override {
        queue(s, [=, this] {
            inner_->running_statistics(inner_->main(), channels, epsilon, real(running), real(statistics));
        });
    }
    void update_running(Stream& s, int64_t rows, int channels, float momentum, float one_minus_momentum, bool unbiased,
                        const float* moments, float* running) override {
        queue(s, [=, this] {
            inner_->update_running(inner_->main(), rows, channels, momentum, one_minus_momentum, unbiased,
                                   real(moments), real(running));
        });
    }
    void batch_norm(Stream& s, int64_t rows, int channels, bool relu, const float* x, const float* statistics,
                    const float* gamma, const float* beta, float* y) override {
        queue(s, [=, this] {
            inner_->batch_norm(inner_->main(), rows, channels, relu, real(x), real(statistics), real(gamma), real(beta),
                               real(y));
        });
    }
    void batch_norm_sums(Stream& s, int64_t rows, int channels, const float* x, const float* statistics,
                         const float* dy, const float* masked_by, float* sums) override {
        queue(s, [=, this] {
            inner_->batch_norm_sums(inner_->main(), rows, channels, real(x), real(statistics), real(dy),
                                    real(masked_by), real(sums));
        });
    }
    void batch_norm_backward(Stream& s, int64_t rows, int channels, int64_t count, const float* x,
                             const float* statistics, const float* gamma, const float* sums, const float* dy,
                             const float* masked_by, float* dx) override {
        queue(s, [=, this] {
            inner_->batch_norm_backward(inner_->main(), rows, channels, count, real(x), real(statistics), real(gamma),
                                        real(sums), real(dy), real(masked_by), real(dx));
        });
    }
    void lrn(Stream& s, const LrnShape& shape, int64_t rows, const float* x, float* y) override {
        queue(s, [=, this] { inner_->lrn(inner_->main(), shape, rows, real(x), real(y)); });
    }
    void lrn_backward(Stream& s, const LrnShape& shape, int64_t rows, const float* x, const float* dy,
                      float* dx) override {
        queue(s, [=, this] { inner_->lrn_backward(inner_->main(), shape, rows, real(x), real(dy), real(dx)); });
    }

    void smoothed_cross_entropy(Stream& s, int rows, int classes, float smoothing, const float* logits,
                                const int32_t* labels, float* loss, float* dlogits) override {
        queue(s, [=, this] {
            inner_->smoothed_cross_entropy(inner_->main(), rows, classes, smoothing, real(logits), real(labels),
                                           real(loss), real(dlogits));
        });
    }
    void sigmoid_cross_entropy(Stream& s, int rows, const float* logits, const int32_t* labels, float* loss,
                               float* dlogits) override {
        queue(s, [=, this] {
            inner_->sigmoid_cross_entropy(inner_->main(), rows, real(logits), real(labels), real(loss), real(dlogits));
        });
    }
    void sigmoid(Stream& s, int64_t n, const float* x, float* y) override {
        queue(s, [=, this] { inner_->sigmoid(inner_->main(), n, real(x), real(y)); });
    }
    void sigmoid_backward(Stream& s, int64_t n, const float* y, const float* dy, float* dx) override {
        queue(s, [=, this] { inner_->sigmoid_backward(inner_->main(), n, real(y), real(dy), real(dx)); });
    }
    void squared_error(Stream& s, int rows, const float* predictions, const float* targets, float* loss,
                       float* dpredictions) override {
        queue(s, [=, this] {
            inner_->squared_error(inner_->main(), rows, real(predictions), real(targets), real(loss),
                                  real(dpredictions));
        });
    }

    std::unique_ptr<Expand> plan_expand(int in_columns, std::span<const ExpandColumn> columns) override {
        return std::make_unique<QueuedExpand>(*this, inner_->plan_expand(in_columns, columns));
    }
    void copy_part(Stream& s, int64_t rows, int width, const float* from, RowPart from_part, float* to,
                   RowPart to_part) override {
        queue(s,
              [=, this] { inner_->copy_part(inner_->main(), rows, width, real(from), from_part, real(to), to_part); });
    }
    void fill(Stream& s, int64_t n, float value, float* x) override {
        queue(s, [=, this] { inner_->fill(inner_->main(), n, value, real(x)); });
    }

  protected:
    explicit SeparateMemoryOperations(std::unique_ptr<Backend> inner) : inner_(std::move(inner)), memory_(*inner_) {}

    static DeferredStream& of(Stream& stream) { return static_cast<DeferredStream&>(stream); }
    void queue(Stream& stream, std::function<void()> work) { of(stream).push(std::move(work)); }
    template <class T>
    T* real(T* device) {
        return memory_.real(device);
    }
    void* real(void* device) { return memory_.real(static_cast<std::byte*>(device)); }
    const void* real(const void* device) { return memory_.real(static_cast<const std::byte*>(device)); }
    std::vector<float*> real(const std::vector<float*>& all) {
        std::vector<float*> found;
        for (float* const one : all) found.push_back(memory_.real(one));
        return found;
    }

    std::unique_ptr<Backend> inner_;
    SeparateMemory memory_;

  private:
    class QueuedExpand final : public Expand {
      public:
        QueuedExpand(SeparateMemoryOperations& on, std::unique_ptr<Expand> inner) : on_(on), inner_(std::move(inner)) {}
        ~QueuedExpand() override { on_.synchronize(); }
        QueuedExpand(const QueuedExpand&) = delete;
        QueuedExpand& operator=(const QueuedExpand&) = delete;
        void forward(Stream& s, int rows, const float* x, float* y) override {
            on_.queue(s, [=, this] { inner_->forward(on_.inner_->main(), rows, on_.real(x), on_.real(y)); });
        }

      private:
        SeparateMemoryOperations& on_;
        std::unique_ptr<Expand> inner_;
    };
};

}  // namespace lockstep::test

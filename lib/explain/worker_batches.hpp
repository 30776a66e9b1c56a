// The batches of logical workers: read one worker at a time, or the rows of all of them as one batch.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "data/augmentation.hpp"
#include "explain/worker_reading.hpp"
#include "nn/network.hpp"

namespace lockstep {

/// What a worker reads in an epoch. Augmented by the places that the samples have in the epoch, not in this list, so
/// that who reads a sample changes nothing of it.
class WorkerView final : public SampleView {
  public:
    WorkerView(const Dataset& base, WorkerEpoch read, int64_t epoch, const LoaderOptions& options);
    int32_t read(int64_t index, std::span<float> pixels) const override;
    const std::vector<int64_t>& positions() const { return positions_; }

  private:
    std::vector<int64_t> positions_;
    int64_t epoch_;
    std::optional<Augmentation> augmentation_;
};

/// The batches of a worker's epoch, one after another.
class WorkerBatches {
  public:
    /// `options`: seed, augmentation and threads are taken from it.
    WorkerBatches(const Dataset& base, WorkerEpoch read, int64_t batch, int shards, int64_t epoch,
                  LoaderOptions options);
    WorkerBatches(const WorkerBatches&) = delete;
    WorkerBatches& operator=(const WorkerBatches&) = delete;

    int shards() const { return shards_; }
    /// False at the end.
    bool next();
    const Batch& batch() const { return *batch_now_; }
    /// Of the batch's rows, in the order of the epoch.
    const int64_t* positions() const { return view_.positions().data() + (taken_ - 1) * batch_; }

  private:
    WorkerView view_;
    int shards_;
    int64_t batch_, steps_ = 0, taken_ = 0;
    std::unique_ptr<Loader> loader_;
    const Batch* batch_now_ = nullptr;
};

/// Rows of workers, one worker after another, and the sizes of all their shards.
class JointRows {
  public:
    /// For at most so many rows of so many elements.
    JointRows(Backend& backend, int64_t rows, int64_t elements);

    void clear();
    void append(const WorkerBatches& worker);
    void append_nothing(int shards) { sizes_.insert(sizes_.end(), static_cast<std::size_t>(shards), 0); }

    /// In place of the sizes that were appended; as many rows.
    void set_sizes(std::span<const int64_t> sizes) { sizes_.assign(sizes.begin(), sizes.end()); }

    int64_t rows() const { return static_cast<int64_t>(labels_.size()); }
    const std::vector<int64_t>& sizes() const { return sizes_; }
    NetworkInput input(int64_t epoch) const;

  private:
    int64_t elements_;
    std::unique_ptr<Buffer> pixels_;
    std::vector<int32_t> labels_;
    std::vector<int64_t> positions_, sizes_;
};

}  // namespace lockstep

#include "train/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/canonical_tree.hpp"
#include "core/log.hpp"
#include "train/confusion.hpp"
#include "train/evaluation_rows.hpp"
#include "train/host_outputs.hpp"
#include "train/settings.hpp"

namespace lockstep {
namespace {

/// One shard's part of a piece.
struct ShardSums {
    float loss = 0;  // plain adds from +0 in data order
    int32_t correct = 0;
    int32_t top5 = 0;
};

/// The sums of this rank's shards of every piece, from its rows one after another.
class ShardCounter {
  public:
    explicit ShardCounter(ShardRange local) : local_(local) {}

    void begin_piece(const Batch& batch) {
        batch_ = &batch;
        shard_ = local_.begin - 1;
        left_ = 0;
    }
    /// A row: its loss, and how many classes come before its label.
    void add(float loss, int ahead) {
        while (left_ == 0) next_shard();
        ShardSums& sums = sums_.back();
        sums.loss += loss;
        sums.correct += ahead == 0;
        sums.top5 += ahead < 5;
        --left_;
    }
    void end_piece() {
        while (shard_ + 1 < local_.end) next_shard();
    }
    const std::vector<ShardSums>& sums() const { return sums_; }  // [piece][local shard]

  private:
    void next_shard() {
        left_ = batch_->shard_sizes[static_cast<std::size_t>(++shard_)];
        sums_.emplace_back();
    }

    ShardRange local_;
    const Batch* batch_ = nullptr;
    int shard_ = 0;
    int64_t left_ = 0;  // rows of it to come
    std::vector<ShardSums> sums_;
};

/// The canonical tree over one piece's shards; empty ones contribute nothing. Returns whether [lo, hi) held any sample.
bool tree_sum(std::span<const float> values, std::span<const int64_t> sizes, int lo, int hi, float& sum) {
    if (hi - lo == 1) {
        sum = values[static_cast<std::size_t>(lo)];
        return sizes[static_cast<std::size_t>(lo)] > 0;
    }
    const int middle = split_point(lo, hi);
    float left = 0;
    float right = 0;
    const bool any_left = tree_sum(values, sizes, lo, middle, left);
    const bool any_right = tree_sum(values, sizes, middle, hi, right);
    sum = any_left && any_right ? left + right : any_left ? left : right;
    return any_left || any_right;
}

}  // namespace

EvalResult evaluate(const EvaluationContext& context, const Dataset& data, bool with_confusion) {
    const ShardPlan plan = evaluation_plan(context.config, data.size());
    const int classes = context.network.classes();
    const int shards = plan.shards();
    const ShardRange local = shards_of_rank(shards, context.comm.rank(), context.comm.size());
    const LossSpec& loss_kind = context.network.loss();
    const auto width = static_cast<std::size_t>(context.network.outputs());
    std::vector<float> scores;  // of class 1, of every local row, for the AUC
    std::vector<int32_t> labels;
    const bool counts_confusion = classes == 2 || (with_confusion && classes > 0);
    Confusion confusion(counts_confusion ? classes : 0);
    HostOutputs host(context.backend, context.network);
    ShardCounter own(local);
    for_each_piece(context, data, plan, [&](const EvaluationRows& rows) {
        const auto count = static_cast<std::size_t>(rows.count);
        const int32_t* own_labels = rows.batch.labels + rows.first;
        const float *losses = nullptr, *values = nullptr, *probabilities = nullptr;
        if (count > 0) {
            losses = host.losses(rows.count, rows.outputs, rows.labels);
            values = host.values(rows.count, rows.outputs);
            if (classes == 2) probabilities = host.probabilities(rows.count, rows.outputs);
        }
        if (classes == 2) {
            for (std::size_t r = 0; r < count; ++r) scores.push_back(probabilities[2 * r + 1]);
            labels.insert(labels.end(), own_labels, own_labels + count);
        }
        if (rows.first == 0) own.begin_piece(rows.batch);
        for (std::size_t row = 0; row < count; ++row) {
            const float* const own_probabilities = classes == 2 ? probabilities + 2 * row : nullptr;
            const int ahead = classes == 0 ? 0
                                           : classes_ahead(loss_kind, classes, values + row * width, own_probabilities,
                                                           own_labels[row]);
            own.add(losses[row], ahead);
            if (!counts_confusion) continue;
            const float* const ranked = loss_kind.kind == LossKind::kSigmoid ? own_probabilities : values + row * width;
            const int32_t label = own_labels[row];
            confusion.add(label, ahead == 0 ? label : largest_class({ranked, static_cast<std::size_t>(classes)}));
        }
        if (rows.last()) own.end_piece();
    });

    const std::vector<std::vector<ShardSums>> all = gather_values<ShardSums>(context.comm, own.sums());
    EvalResult result;
    result.count = data.size();
    double loss = 0;
    int64_t correct = 0;
    int64_t top5 = 0;
    std::vector<float> values(static_cast<std::size_t>(shards));
    for (int64_t piece = 0; piece < plan.steps_per_epoch(); ++piece) {
        for (int r = 0; r < context.comm.size(); ++r) {
            const ShardRange range = shards_of_rank(shards, r, context.comm.size());
            for (int v = range.begin; v < range.end; ++v) {
                const ShardSums& sums =
                    all[static_cast<std::size_t>(r)][static_cast<std::size_t>(piece * range.size() + v - range.begin)];
                values[static_cast<std::size_t>(v)] = sums.loss;
                correct += sums.correct;
                top5 += sums.top5;
            }
        }
        float total = 0;
        tree_sum(values, plan.shard_sizes(piece), 0, shards, total);
        loss += static_cast<double>(total);
    }
    const auto count = static_cast<double>(data.size());
    result.loss = loss / count;
    if (!std::isfinite(result.loss)) {
        warn(
            "an evaluation's loss is {}: the network's outputs are no finite numbers, and the other metrics mean "
            "nothing "
            "(with batch norm after a few steps: its running statistics do not fit yet)",
            std::isnan(result.loss) ? std::fabs(result.loss) : result.loss);
    }
    if (classes == 0) {
        result.mse = result.loss;
        return result;
    }
    result.accuracy = static_cast<double>(correct) / count;
    if (classes > 5) result.top5 = static_cast<double>(top5) / count;
    if (counts_confusion) {
        Confusion total(classes);
        for (const auto& part : gather_values<int64_t>(context.comm, confusion.counts())) total.add(part);
        if (with_confusion) result.confusion = total.counts();
        if (classes == 2) {
            result.precision = total.precision(1);
            result.recall = total.recall(1);
        }
    }
    if (classes == 2) {
        std::vector<float> all_scores;
        std::vector<int32_t> all_labels;
        for (const auto& part : gather_values<float>(context.comm, scores))
            all_scores.insert(all_scores.end(), part.begin(), part.end());
        for (const auto& part : gather_values<int32_t>(context.comm, labels))
            all_labels.insert(all_labels.end(), part.begin(), part.end());
        result.auc = area_under_curve(all_scores, all_labels);
    }
    return result;
}

}  // namespace lockstep

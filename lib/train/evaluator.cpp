#include "train/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "core/error.hpp"
#include "io/json_number.hpp"
#include "nn/pass_program.hpp"
#include "train/confusion.hpp"
#include "train/device_input.hpp"
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

/// Some of this rank's rows of a piece: as many as go through the network at once.
struct Rows {
    const Batch& batch;  // of the whole piece
    int first = 0;       // row of the batch
    int count = 0;
    const float* outputs = nullptr;   // [count][Network::outputs()], on the device
    const int32_t* labels = nullptr;  // [count], on the device
    bool last() const { return first + count == batch.rows; }
};

/// Calls visit(rows) for this rank's part of every piece, row after row; once where it has none.
void for_each_piece(const EvaluationContext& context, const Dataset& data, const ShardPlan& plan,
                    FunctionRef<void(const Rows&)> visit) {
    DeviceInput device(context.backend, data.shape().elements());
    LoaderOptions options;
    options.shuffle = Shuffle::kNone;
    options.local = shards_of_rank(plan.shards(), context.comm.rank(), context.comm.size());
    options.last_update = plan.steps_per_epoch();
    options.threads = input_threads(context.config);
    Loader loader(data, plan, device.with_memory(options));
    context.comm.begin_work();
    for (int64_t piece = 0; piece < plan.steps_per_epoch(); ++piece) {
        const Batch& batch = loader.next([&] { context.comm.still_working(); });
        const NetworkInput rows = device.rows(batch);
        if (batch.rows == 0) visit({batch});
        const std::span<const int64_t> sizes = batch.shard_sizes;
        for (const PassProgram::Pass& pass :
             pass_program(plan.shards(), options.local, sizes, context.network.most_rows()).passes) {
            const float* const pixels = rows.pixels + pass.first_row * data.shape().elements();
            const auto own = sizes.subspan(static_cast<std::size_t>(pass.shards.begin),
                                           static_cast<std::size_t>(pass.shards.size()));
            visit({batch, pass.first_row, pass.rows, context.network.logits(pixels, own, context.weights),
                   rows.labels + pass.first_row});
        }
    }
    context.backend.synchronize();  // before the memory of its copies goes
}

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

/// What every rank gathered, back as values: [rank][…].
template <class T>
std::vector<std::vector<T>> gather(Communicator& comm, std::span<const T> own) {
    std::vector<std::vector<T>> all;
    for (const std::vector<std::byte>& bytes : comm.all_gather(std::as_bytes(own))) {
        std::vector<T>& values = all.emplace_back(bytes.size() / sizeof(T));
        if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    }
    return all;
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
    for_each_piece(context, data, plan, [&](const Rows& rows) {
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

    const std::vector<std::vector<ShardSums>> all = gather<ShardSums>(context.comm, own.sums());
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
    if (classes == 0) {
        result.mse = result.loss;
        return result;
    }
    result.accuracy = static_cast<double>(correct) / count;
    if (classes > 5) result.top5 = static_cast<double>(top5) / count;
    if (counts_confusion) {
        Confusion total(classes);
        for (const auto& part : gather<int64_t>(context.comm, confusion.counts())) total.add(part);
        if (with_confusion) result.confusion = total.counts();
        if (classes == 2) {
            result.precision = total.precision(1);
            result.recall = total.recall(1);
        }
    }
    if (classes == 2) {
        std::vector<float> all_scores;
        std::vector<int32_t> all_labels;
        for (const auto& part : gather<float>(context.comm, scores))
            all_scores.insert(all_scores.end(), part.begin(), part.end());
        for (const auto& part : gather<int32_t>(context.comm, labels))
            all_labels.insert(all_labels.end(), part.begin(), part.end());
        result.auc = area_under_curve(all_scores, all_labels);
    }
    return result;
}

void predict(const EvaluationContext& context, const Dataset& data, FunctionRef<void(const std::string&)> write) {
    const ShardPlan plan = evaluation_plan(context.config, data.size());
    const int classes = context.network.classes();
    const auto width = static_cast<std::size_t>(std::max(classes, 1));
    if (context.comm.rank() == 0) {
        std::string header = classes == 0 ? "index,target,prediction" : "index,label,class";
        for (int c = 0; c < classes; ++c) header += fmt::format(",p{}", c);
        write(header + "\n");
    }
    HostOutputs host(context.backend, context.network);
    std::vector<float> own;  // of this rank's rows of a piece
    for_each_piece(context, data, plan, [&](const Rows& rows) {
        const Batch& batch = rows.batch;
        if (rows.first == 0) own.clear();
        if (rows.count > 0) {
            const float* const values =
                classes == 0 ? host.values(rows.count, rows.outputs) : host.probabilities(rows.count, rows.outputs);
            own.insert(own.end(), values, values + static_cast<std::size_t>(rows.count) * width);
        }
        if (!rows.last()) return;
        const std::vector<std::vector<float>> all = gather<float>(context.comm, own);
        if (context.comm.rank() != 0) return;
        // Ranks hold consecutive shards, so their rows follow one another in data order.
        int64_t index = batch.at.step * plan.batch();
        std::string text;
        for (const std::vector<float>& part : all) {
            for (std::size_t row = 0; row * width < part.size(); ++row, ++index) {
                const float* p = part.data() + row * width;
                if (classes == 0) {
                    const auto target = std::bit_cast<float>(data.label(index));
                    text += fmt::format("{},{},{}\n", index, json_number(target), json_number(*p));
                    continue;
                }
                text += fmt::format("{},{},{}", index, data.label(index), std::max_element(p, p + width) - p);
                for (std::size_t c = 0; c < width; ++c) text.append(",").append(json_number(p[c]));
                text += '\n';
            }
        }
        write(text);
    });
}

double area_under_curve(std::span<const float> scores, std::span<const int32_t> labels) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
    // Ascending: a positive beats every negative of a lower score and ties with those of its own.
    uint64_t twice = 0;  // fits: samples are far fewer than 2^31
    int64_t negatives_below = 0;
    int64_t positives = 0;
    for (std::size_t i = 0; i < order.size();) {
        std::size_t j = i;
        int64_t p = 0;
        int64_t n = 0;
        for (; j < order.size() && scores[order[j]] == scores[order[i]]; ++j) (labels[order[j]] == 1 ? p : n) += 1;
        if (j == i) return std::numeric_limits<double>::quiet_NaN();  // a NaN score equals nothing
        twice += static_cast<uint64_t>(p) * static_cast<uint64_t>(2 * negatives_below + n);
        negatives_below += n;
        positives += p;
        i = j;
    }
    if (positives == 0 || negatives_below == 0) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(twice) / (2.0 * static_cast<double>(positives) * static_cast<double>(negatives_below));
}

}  // namespace lockstep

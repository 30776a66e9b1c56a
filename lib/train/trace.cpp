#include "train/trace.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "core/hash.hpp"
#include "train/step_engine.hpp"
#include "train/trace_file.hpp"

namespace lockstep {
namespace {

using Words = std::vector<uint64_t>;

// A rank's message to rank 0: two sums, the total's and the weights' hashes, then its nodes.
constexpr std::size_t kGradientAt = 2;
constexpr std::size_t kNodeWords = 2;  // before a node's hashes: its shards, its loss

/// The place of this rank's first row in the global batch, whose rows stand in shard order.
int64_t first_place(const Batch& batch, ShardRange local) {
    return std::accumulate(batch.shard_sizes.begin(), batch.shard_sizes.begin() + local.begin, int64_t{0});
}

/// Tensors of which the hashes of two ranks differ.
std::vector<std::string> differing(const ParameterTable& parameters, std::span<const uint64_t> left,
                                   std::span<const uint64_t> right) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (left[i] != right[i]) names.push_back(parameters.placed()[i].name);
    }
    return names;
}

}  // namespace

Trace::Trace(Communicator& comm, Backend& backend, const ParameterTable& parameters, TraceFacts facts)
    : comm_(comm),
      parameters_(parameters),
      facts_(std::move(facts)),
      local_(shards_of_rank(facts_.shards, comm.rank(), comm.size())),
      hasher_(parameters, backend),
      view_(backend),
      gradient_(parameters.all().size(), 0),
      weights_(parameters.placed().size(), 0) {}

void Trace::open(const std::string& file, int64_t step, bool goes_on, const float* weights) {
    hasher_.hash(weights, 0, static_cast<int>(weights_.size()), weights_);
    const std::vector<Words> all = exchange();
    if (comm_.rank() != 0) return;
    if (!file.empty()) {
        TraceCut cut;  // all of a long run's trace is read for it, while the others wait
        if (goes_on) comm_.work_aside([&] { cut = cut_trace(file, step); });
        file_ = std::make_unique<LineFile>(file, cut.bytes);
        if (cut.step == step) return;  // it holds what was before
    }
    const auto buffers = static_cast<int>(weights_.size() - gradient_.size());
    TraceStart line{step, facts_.shards, facts_.data, {}, buffers, weights_, ranks_apart(all)};
    for (const Parameter& parameter : parameters_.placed()) line.tensors.push_back({parameter.name, parameter.shape});
    append(trace_line(line));
}

void Trace::step_begins() {
    indices_ = data_ = 0;
    own_.clear();
}

// Sums modulo 2^64 of one hash a row, keyed by the row's place in the global batch: the same however the batch is cut
// into shards, and whichever rank reads which.
void Trace::batch_read(const Batch& batch) {
    const int64_t first = first_place(batch, local_);
    const auto width = static_cast<std::size_t>(facts_.sample_elements);
    for (int row = 0; row < batch.rows; ++row) {
        const auto place = static_cast<uint64_t>(first + row);
        indices_ += hash64(std::as_bytes(std::span(batch.indices + row, 1)), place);
        const uint64_t key = place << 32 | static_cast<uint32_t>(batch.labels[row]);
        data_ += hash64(std::as_bytes(std::span(batch.pixels + static_cast<std::size_t>(row) * width, width)), key);
    }
    global_size_ = batch.global_size;
    for (const ShardRange node : maximal_nodes(facts_.shards, local_, batch.shard_sizes)) {
        own_.push_back({node, comm_.rank(), 0, Words(parameters_.all().size(), 0)});
    }
}

// Whole layers become final, so no tensor ever lies on a border. A rank alone has one sum, which is the total: it is
// looked at once, in reduced().
void Trace::partials_final(int64_t first, int64_t end, std::span<float* const> partial) {
    const std::vector<Parameter>& all = parameters_.all();
    const auto tensor_at = [&](int64_t element) {
        const auto found =
            std::partition_point(all.begin(), all.end(), [&](const Parameter& p) { return p.offset < element; });
        return static_cast<int>(found - all.begin());
    };
    for (std::size_t i = 0; i < partial.size(); ++i) {
        own_[i].loss = *view_.read(partial[i] + kLeadLoss, 1);
        if (comm_.size() == 1) continue;
        hasher_.hash(partial[i] + kLead, tensor_at(first), tensor_at(end), own_[i].gradient);
    }
}

void Trace::reduced(const Batch& /*batch*/, const float* total) {
    hasher_.hash(total + kLead, 0, static_cast<int>(gradient_.size()), gradient_);
    if (comm_.size() == 1) own_[0].gradient = gradient_;
}

void Trace::updated(const StepOutcome& outcome, float* weights) {
    hasher_.hash(weights, 0, static_cast<int>(weights_.size()), weights_);
    const std::vector<Words> all = exchange();
    if (comm_.rank() != 0) return;
    TraceStep line{outcome.at.update, outcome.at.epoch, global_size_,  0, 0, outcome.loss, outcome.lr, gradient_,
                   weights_,          ranks_apart(all), own_nodes(all)};
    for (const Words& words : all) {
        line.indices += words[0];
        line.data += words[1];
    }
    append(trace_line(line));
}

/// What every rank has, in the order of ranks. Only rank 0 has a use for it; the others' answer costs them nothing.
std::vector<Words> Trace::exchange() const {
    Words words{indices_, data_};
    words.insert(words.end(), gradient_.begin(), gradient_.end());
    words.insert(words.end(), weights_.begin(), weights_.end());
    for (const TraceNode& node : own_) {
        words.push_back(static_cast<uint64_t>(node.shards.begin) << 32 | static_cast<uint32_t>(node.shards.end));
        words.push_back(std::bit_cast<uint32_t>(node.loss));
        words.insert(words.end(), node.gradient.begin(), node.gradient.end());
    }
    std::vector<Words> all;
    for (const std::vector<std::byte>& bytes : comm_.all_gather(std::as_bytes(std::span(words)))) {
        Words& of_rank = all.emplace_back(bytes.size() / sizeof(uint64_t));
        std::memcpy(of_rank.data(), bytes.data(), bytes.size());
    }
    return all;
}

std::vector<TraceApart> Trace::ranks_apart(const std::vector<Words>& all) const {
    std::vector<TraceApart> apart;
    const std::size_t tensors = gradient_.size();
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        const std::span words(all[rank]);
        TraceApart own{static_cast<int>(rank), differing(parameters_, gradient_, words.subspan(kGradientAt, tensors)),
                       differing(parameters_, weights_, words.subspan(kGradientAt + tensors, weights_.size()))};
        if (!own.gradient.empty() || !own.weights.empty()) apart.push_back(std::move(own));
    }
    return apart;
}

std::vector<TraceNode> Trace::own_nodes(const std::vector<Words>& all) const {
    std::vector<TraceNode> nodes;
    const std::size_t tensors = gradient_.size();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const Words& words = all[rank];
        for (std::size_t at = kGradientAt + tensors + weights_.size(); at < words.size(); at += kNodeWords + tensors) {
            const auto hashes = words.begin() + static_cast<std::ptrdiff_t>(at + kNodeWords);
            nodes.push_back({{static_cast<int>(words[at] >> 32), static_cast<int>(words[at] & 0xffffffff)},
                             static_cast<int>(rank),
                             std::bit_cast<float>(static_cast<uint32_t>(words[at + 1])),
                             {hashes, hashes + static_cast<std::ptrdiff_t>(tensors)}});
        }
    }
    return nodes;
}

void Trace::append(const std::string& line) {
    if (file_) {
        file_->append(line);
    } else {
        text_ += line;
        text_ += '\n';
    }
}

}  // namespace lockstep

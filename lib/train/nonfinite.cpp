#include "train/nonfinite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t kMostNamed = 8;   // samples of a shard, and tensors, named in the message
constexpr std::size_t kMostShards = 2;  // the message is one line

constexpr std::size_t kLeadBytes = kLead * sizeof(float);

/// Runs rows [first, first + count) of the batch as one shard of its own and says whether loss and gradient are finite.
/// Gaps between the tensors of the gradient hold zeros as they are.
bool is_finite(const ReplayContext& c, int first, int count, float& loss) {
    const std::vector<int64_t> sizes{count};
    const std::array<float, kLead> zeros{};
    c.backend.upload(c.backend.main(), zeros.data(), c.scratch, kLeadBytes);
    float* const partial[] = {c.scratch};
    NetworkInput input = c.input;
    input.rows = count;
    input.pixels += first * c.sample_elements;
    input.labels += first;
    input.positions += first;
    c.network.train_step(input, 1, {0, 1}, sizes, c.weights, partial, [](int64_t) {});
    c.backend.download(c.backend.main(), c.scratch + kLeadLoss, &loss, sizeof loss);
    return std::isfinite(loss) &&
           c.backend.all_finite(c.backend.main(), c.network.parameters().flat_elements(), c.scratch + kLead);
}

/// The tensors of which the last replay's gradient was not finite.
std::vector<std::string> bad_tensors(const ReplayContext& c) {
    std::vector<std::string> names;
    for (const Parameter& p : c.network.parameters().all()) {
        if (!c.backend.all_finite(c.backend.main(), p.count, c.scratch + kLead + p.offset)) names.push_back(p.name);
    }
    return names;
}

/// What a replay of a part cannot know: batch norm makes a sample depend on others.
std::string doubt(const Network& network) {
    if (network.meets_in_step()) {
        return ". With batch_norm.scope = \"global\" that is not certain: the replay of a part has statistics of its "
               "own, not those of the batch";
    }
    if (!network.has_batch_norm()) return "";
    return ". Which samples it were is not certain: batch norm gives a sample that is replayed alone statistics of its "
           "own, not those of the shard";
}

}  // namespace

std::string explain_nonfinite(const ReplayContext& c) {
    std::string own;  // a line for each of this rank's bad shards
    int row = 0;
    for (int v = c.local.begin; v < c.local.end; ++v) {
        const int count = static_cast<int>(c.batch.shard_sizes[static_cast<std::size_t>(v)]);
        const int first = row;
        row += count;
        float loss = 0;
        if (count == 0 || is_finite(c, first, count, loss)) continue;
        std::string line = fmt::format("shard {} (rank {})", v, c.comm.rank());
        const bool loss_bad = !std::isfinite(loss);
        std::vector<std::string> tensors = bad_tensors(c);
        if (loss_bad) line += ": loss";
        if (!tensors.empty()) {
            const std::size_t more = tensors.size() > kMostNamed ? tensors.size() - kMostNamed : 0;
            tensors.resize(tensors.size() - more);
            line += fmt::format("{} gradient of {}{}", loss_bad ? "," : ":", fmt::join(tensors, ", "),
                                more > 0 ? fmt::format(" and {} more", more) : "");
        }
        std::vector<std::string> samples;
        std::size_t bad = 0;
        for (int i = first; i < first + count; ++i) {
            if (is_finite(c, i, 1, loss)) continue;
            if (++bad <= kMostNamed)
                samples.push_back(fmt::format("{} (sample {})", c.batch.positions[i], c.batch.indices[i]));
        }
        if (bad == 0) {
            line += "; every sample alone is finite, their sum is not";
        } else {
            line += fmt::format("; at position{} {}{}", bad == 1 ? "" : "s", fmt::join(samples, ", "),
                                bad > kMostNamed ? fmt::format(" and {} more", bad - kMostNamed) : "");
        }
        own += line + "\n";
    }
    std::vector<std::string> shards;
    std::size_t bad_shards = 0;
    for (const std::string& lines : c.comm.all_gather(own)) {
        for (std::size_t begin = 0; begin < lines.size(); begin = lines.find('\n', begin) + 1) {
            if (++bad_shards <= kMostShards) shards.push_back(lines.substr(begin, lines.find('\n', begin) - begin));
        }
    }
    std::string all = fmt::format("{}", fmt::join(shards, "; "));
    if (bad_shards > kMostShards) all += fmt::format("; and {} shards more", bad_shards - kMostShards);
    if (bad_shards == 0) all = "every shard alone is finite, their sum is not";
    return fmt::format(
        "step {} (epoch {}): non-finite loss or gradient, the weights were not updated: {}{}. Lower optimizer.lr, set "
        "optimizer.clip_norm, or look at these samples",
        c.batch.at.update, c.batch.at.epoch, all, doubt(c.network));
}

}  // namespace lockstep

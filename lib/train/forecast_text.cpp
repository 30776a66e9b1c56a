// `plan` for people: a few tables, in which ranks that do the same share a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "io/json_number.hpp"
#include "train/forecast.hpp"
#include "train/text_table.hpp"

namespace lockstep {
namespace {

std::string with_commas(int64_t value) {
    std::string digits = std::to_string(value);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    return digits;
}

std::string megabytes(int64_t bytes) {
    return fmt::format("{:.{}f}", static_cast<double>(bytes) / 1e6, bytes < 10'000'000 ? 2 : 1);
}

std::string count_text(const std::optional<int64_t>& value) {
    return value ? with_commas(*value) : "?";
}

std::string rates_text(const std::vector<LearningRate>& rates) {
    constexpr std::size_t kFirst = 8, kLast = 2;
    std::string text;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        if (rates.size() > kFirst + kLast + 1 && i == kFirst) {
            i = rates.size() - kLast;
            text += fmt::format(", … {} more (--json has all)", i - kFirst);
        }
        text += fmt::format("{}{} at step {}", i == 0 ? "" : ", ", json_number(rates[i].lr), rates[i].step);
    }
    return text;
}

std::string held_out_text(const DataFacts& data) {
    if (data.validation_samples == 0) return "";
    return fmt::format("; {} held out for validation", with_commas(data.validation_samples));
}

/// Below 16 samples statistics are noise, and what is learned differs with the number of shards.
std::string norm_text(const Forecast& f) {
    constexpr int64_t kFew = 16;
    const std::string least = fmt::format("{} sample{} at least", *f.norm_samples, *f.norm_samples == 1 ? "" : "s");
    if (f.norm_global) return fmt::format("statistics of the global batch, {}", least);
    std::string text = fmt::format("statistics of each shard, {}", least);
    if (*f.norm_samples < kFew) {
        text += "; warning: that is few. Use fewer batch.shards, or batch_norm.scope = \"global\"";
    }
    return text;
}

/// Moments travel beside the gradients.
std::string norm_bytes_text(const Forecast& f) {
    const WorldForecast* most = nullptr;
    for (const WorldForecast& world : f.worlds) {
        if (world.norm_bytes > (most == nullptr ? 0 : most->norm_bytes)) most = &world;
    }
    if (most == nullptr) return "";
    return fmt::format("; {} bytes a step sent for it by a rank of {}", with_commas(most->norm_bytes), most->world);
}

std::string head_text(const Forecast& f) {
    const ShardPlan& shards = f.plan.shards;
    std::string text;
    const auto line = [&](const char* name, const std::string& value) {
        text += fmt::format("{:<14}{}\n", name, value);
    };
    line("data", fmt::format("{} samples of {}x{}x{}, {}{}; {} to test", with_commas(shards.samples()),
                             f.data.shape.height, f.data.shape.width, f.data.shape.channels,
                             f.data.classes == 0 ? "a regression" : fmt::format("{} classes", f.data.classes),
                             held_out_text(f.data), with_commas(f.data.test_samples)));
    const char* name = "read as";
    for (const std::string& note : f.data.notes) line(std::exchange(name, ""), note);
    line("network", fmt::format("{}, {} parameters", f.model, with_commas(f.parameters)));
    if (f.norm_samples) line("batch norm", norm_text(f) + norm_bytes_text(f));
    line("batch", fmt::format("{} samples in {} shard{}, layout {}; the last of an epoch has {}", shards.batch(),
                              shards.shards(), shards.shards() == 1 ? "" : "s", f.layout, f.last_batch));
    line("steps", fmt::format("{}; {} an epoch; {} epoch{}", with_commas(f.plan.total_steps),
                              with_commas(f.plan.steps_per_epoch), f.plan.epochs, f.plan.epochs == 1 ? "" : "s"));
    line("optimizer", f.optimizer);
    line("learning rate", rates_text(f.rates) + (f.rates_note.empty() ? "" : "; " + f.rates_note));
    return text;
}

std::string explain_worlds(const Forecast& f) {
    if (f.native)
        return "reduce.algorithm = \"native\": the transport decides what is sent; equal bits need equal W.\n";
    const int shards = f.plan.shards.shards();
    if (f.free_worlds.size() == 1 && (shards & (shards - 1)) != 0) {
        return fmt::format(
            "no world but 1 is free: V = {} is no power of two, so ranks send their nodes of the tree one by one.\n"
            "The bits are the same at every W.\n",
            shards);
    }
    return fmt::format(
        "free: {} (powers of two, V = {}, a sample for every rank): recursive halving and doubling are the tree "
        "itself. The others\n"
        "cost: ranks send nodes of the tree one by one and share the shards unevenly. The bits are the same at every "
        "W.\n",
        fmt::join(f.free_worlds, ", "), shards);
}

std::string worlds_text(const Forecast& f) {
    TextTable table({"ranks", "bytes a step", "of a ring's", "messages", "most/mean samples", "speed-up at most", ""});
    for (const WorldForecast& world : f.worlds) {
        const bool compares = world.bytes_sent && world.ring_bytes > 0;
        std::string note = world.note;
        if (world.last_bytes_sent != world.bytes_sent)
            note += fmt::format("; {} bytes in an epoch's last step", with_commas(*world.last_bytes_sent));
        table.add({std::to_string(world.world), count_text(world.bytes_sent),
                   compares ? fmt::format("{:.2f}", static_cast<double>(*world.bytes_sent) /
                                                        static_cast<double>(world.ring_bytes))
                            : "-",
                   count_text(world.messages), fmt::format("{:.2f}", world.imbalance),
                   fmt::format("{:.2f}x", world.world / world.imbalance), note});
    }
    return "\nworlds: gradient bytes and messages that the busiest rank sends in a step\n" + table.text() +
           explain_worlds(f);
}

std::string shards_text(const RankForecast& rank) {
    return rank.shards.empty() ? "none" : fmt::format("[{}, {})", rank.shards.begin, rank.shards.end);
}

std::string shift_text(const RankForecast& rank) {
    return rank.shift_ratio ? fmt::format("{:.4g}", *rank.shift_ratio) : "none";
}

std::string from_to(const std::string& first, const std::string& last) {
    return first == last ? first : first + " - " + last;
}

/// Ranks of a world with as many shards and samples: they differ in what they send by some padding at most.
using Alike = std::vector<const RankForecast*>;

std::vector<Alike> alike_ranks(const WorldForecast& world) {
    std::vector<Alike> groups;
    for (const RankForecast& rank : world.ranks) {
        const auto same = std::find_if(groups.begin(), groups.end(), [&](const Alike& group) {
            return group[0]->shards.size() == rank.shards.size() && group[0]->samples == rank.samples;
        });
        if (same != groups.end()) {
            same->push_back(&rank);
        } else {
            groups.push_back({&rank});
        }
    }
    return groups;
}

std::string numbers_text(const Alike& group) {
    constexpr std::size_t kShown = 3;
    const int first = group.front()->rank;
    const int last = group.back()->rank;
    if (last - first + 1 == static_cast<int>(group.size()) || group.size() <= 2)
        return from_to(std::to_string(first), std::to_string(last));
    std::vector<int> numbers;
    for (std::size_t i = 0; i < std::min(kShown, group.size()); ++i) numbers.push_back(group[i]->rank);
    return fmt::format("{}{}{}", fmt::join(numbers, ", "), group.size() > kShown + 1 ? " … " : ", ", last);
}

template <class Value>
std::string range_text(const Alike& group, Value value) {
    int64_t least = value(*group[0]);
    int64_t most = least;
    for (const RankForecast* rank : group) {
        least = std::min(least, value(*rank));
        most = std::max(most, value(*rank));
    }
    return from_to(with_commas(least), with_commas(most));
}

std::string ranks_text(const Forecast& f) {
    TextTable table({"ranks", "of these", "numbers", "shards", "shift ratio", "samples", "bytes sent", "messages"});
    for (const WorldForecast& world : f.worlds) {
        std::string name = std::to_string(world.world);
        for (const Alike& group : alike_ranks(world)) {
            const RankForecast& a = *group.front();
            const RankForecast& b = *group.back();
            table.add({name, std::to_string(group.size()), numbers_text(group), from_to(shards_text(a), shards_text(b)),
                       from_to(shift_text(a), shift_text(b)), std::to_string(a.samples),
                       a.sent ? range_text(group, [](const RankForecast& r) { return r.sent->bytes; }) : "?",
                       a.sent ? range_text(group, [](const RankForecast& r) { return r.sent->messages; }) : "?"});
            name.clear();
        }
    }
    return "\nranks: what each does in a step, those alike on one line\n" + table.text();
}

std::string memory_text(const Forecast& f) {
    TextTable table({"ranks", "weights", "gradient sums", "optimizer", "exchange", "activations", "loader", "data",
                     "saving", "all"});
    for (const WorldForecast& world : f.worlds) {
        const auto& most = std::max_element(world.ranks.begin(), world.ranks.end(), [](const auto& a, const auto& b) {
                               return a.memory.total() < b.memory.total();
                           })->memory;
        table.add({std::to_string(world.world), megabytes(most.weights), megabytes(most.gradients),
                   megabytes(most.optimizer), megabytes(most.exchange), megabytes(most.activations),
                   megabytes(most.loader), megabytes(most.data), megabytes(most.saving), megabytes(most.total())});
    }
    return fmt::format(
               "\nmemory of the largest rank in MB, with {} thread{} (without the program and what kernels pack for "
               "themselves)\n",
               f.threads, f.threads == 1 ? "" : "s") +
           table.text();
}

std::string samples_text(const Forecast& f) {
    constexpr std::size_t kRanks = 8;
    std::string text;
    for (const WorldForecast& world : f.worlds) {
        std::size_t shown = 0;
        for (const RankForecast& rank : world.ranks) {
            if (rank.first_indices.empty() || rank.shards.empty()) continue;
            if (shown++ == kRanks) {
                text += fmt::format("{} ranks, rank {} and on: --json has all\n", world.world, rank.rank);
                break;
            }
            text += fmt::format("{} rank{}, rank {}:", world.world, world.world == 1 ? "" : "s", rank.rank);
            for (std::size_t step = 0; step < rank.first_indices.size(); ++step)
                text += fmt::format("{} step {}: {}", step == 0 ? "" : ";", step + 1,
                                    fmt::join(rank.first_indices[step], " "));
            text += "\n";
        }
    }
    return text.empty() ? "" : "\nfirst samples of a rank, as numbers in the data set\n" + text;
}

std::string time_text(const Forecast& f) {
    if (f.timed_on.empty()) return "";
    TextTable table({"ranks", "ms a step", "s an epoch", "samples/s"});
    for (const WorldForecast& world : f.worlds) {
        const double step = world.step_seconds.value_or(0);
        table.add({std::to_string(world.world), fmt::format("{:.3g}", step * 1e3),
                   fmt::format("{:.3g}", step * static_cast<double>(f.plan.steps_per_epoch)),
                   with_commas(static_cast<int64_t>(static_cast<double>(f.plan.shards.batch_size(0)) / step))});
    }
    return "\ntime of the busiest rank's part, measured on " + f.timed_on +
           ":\nas if every rank had such a machine, and without waiting for messages\n" + table.text();
}

}  // namespace

std::string forecast_text(const Forecast& forecast) {
    return head_text(forecast) + worlds_text(forecast) + ranks_text(forecast) + memory_text(forecast) +
           samples_text(forecast) + time_text(forecast);
}

}  // namespace lockstep

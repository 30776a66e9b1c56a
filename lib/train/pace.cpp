#include "train/pace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/canonical_tree.hpp"

namespace lockstep {
namespace {

constexpr double kTimesSlower = 3;
constexpr double kShareLost = 0.25;
constexpr std::chrono::seconds kBetweenWarnings{60};
constexpr double kWindowS = 10;  // or a quarter of the deadline, but no less than:
constexpr double kLeastWindowS = 2;

}  // namespace

std::optional<Straggler> find_straggler(const std::vector<double>& step_s, const std::vector<int>& shards,
                                        double wall_s) {
    std::vector<double> each;  // seconds for a shard, of the ranks that are known
    std::optional<std::size_t> slowest;
    const auto of_shard = [&](std::size_t rank) { return step_s[rank] / shards[rank]; };
    for (std::size_t rank = 0; rank < step_s.size(); ++rank) {
        if (step_s[rank] <= 0 || shards[rank] == 0) continue;
        each.push_back(of_shard(rank));
        if (!slowest || of_shard(rank) > of_shard(*slowest)) slowest = rank;
    }
    if (each.size() < 2 || wall_s <= 0) return std::nullopt;
    std::sort(each.begin(), each.end());
    const double middle = each[(each.size() - 2) / 2];  // of the others: the last one is the slowest
    const double usual = middle * shards[*slowest];
    const double lost = (step_s[*slowest] - usual) / wall_s;
    if (step_s[*slowest] < kTimesSlower * usual || lost < kShareLost) return std::nullopt;
    return Straggler{static_cast<int>(*slowest), step_s[*slowest], usual, std::min(lost, 1.0)};
}

std::string straggler_text(const Straggler& s, const std::string& host) {
    const double ms = s.step_s * 1e3;
    return fmt::format(
        "rank {} on {} holds the others up: its own work takes {} ms a step, {:.1f} times as long as theirs, and "
        "they wait for it {:.0f}% of the time",
        s.rank, host, ms < 999.5 ? fmt::format("{:.3g}", ms) : fmt::format("{:.0f}", ms), s.step_s / s.usual_s,
        s.lost * 100);
}

PaceWatch::PaceWatch(Communicator& comm, int shards)
    : comm_(comm),
      window_(comm.timeout() > 0 ? std::clamp(comm.timeout() / 4, kLeastWindowS, kWindowS) : kWindowS),
      window_end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(window_)) {
    for (int rank = 0; rank < comm.size(); ++rank) shards_.push_back(shards_of_rank(shards, rank, comm.size()).size());
}

std::optional<Straggler> PaceWatch::after_step(double seconds, double waited) {
    seconds_ += seconds;
    waited_ += waited;
    ++steps_;
    const Clock::time_point now = Clock::now();
    if (now < window_end_) return std::nullopt;
    const auto steps = static_cast<double>(steps_);
    const double own = std::max(seconds_ - waited_, 0.0) / steps;
    const double wall = seconds_ / steps;
    window_end_ = now + std::chrono::duration_cast<Clock::duration>(window_);
    seconds_ = waited_ = 0;
    steps_ = 0;
    comm_.tell_pace(own);
    if (comm_.rank() != 0) return std::nullopt;
    const std::vector<double> paces = comm_.take_paces();
    if (told_ && now - *told_ < kBetweenWarnings) return std::nullopt;
    const std::optional<Straggler> straggler = find_straggler(paces, shards_, wall);
    if (straggler) told_ = now;
    return straggler;
}

}  // namespace lockstep

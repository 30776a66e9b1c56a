#include "comm/watch.hpp"

#include <algorithm>

namespace lockstep {
namespace {

double seconds(Watch::Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace

void Watch::hear(int rank, const News& news, Clock::time_point now) {
    Rank& r = ranks_[static_cast<std::size_t>(rank)];
    r.heard = now;
    switch (news.kind) {
        case News::Kind::kWaits:
            r.doing = news.kind;
            r.waits_for = news.peer;
            r.waits_since =
                now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(news.value));
            break;
        case News::Kind::kWorks:
            r.doing = news.kind;
            break;
        case News::Kind::kFails:
            fail(rank, news.value);
            break;
        case News::Kind::kPace:
            r.pace = news.value;
            break;
    }
}

// A rank is silent when neither a word nor a message came from it for the whole deadline. Who waits in turn says for
// whom and since when, so that the rank at the end of the chain is given its full time, too, however long the others
// waited.
Watch::Verdict Watch::judge(int peer, Clock::time_point start, Clock::time_point now, double timeout) const {
    Verdict verdict;
    const auto silent_for = [&](int rank, Clock::time_point since) {
        return seconds(now - std::max(since, of(rank).heard));
    };
    // Everybody who lives was heard within the last 3/8 of the deadline: workers speak every eighth of it, waiting
    // ranks after a quarter and then every eighth.
    const auto blame_with_others = [&](int first) {
        if (first >= 0) verdict.silent.push_back(first);
        for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
            if (rank == own_ || rank == first || silent_for(rank, start) < (first < 0 ? timeout : timeout / 2))
                continue;
            verdict.silent.push_back(rank);
        }
        std::sort(verdict.silent.begin(), verdict.silent.end());
    };
    const auto fresh = [&](int rank) { return of(rank).heard > start && seconds(now - of(rank).heard) < timeout / 4; };
    if (peer < 0) {
        blame_with_others(-1);
        for (int rank = 0; rank < static_cast<int>(ranks_.size()) && verdict.at_work < 0; ++rank) {
            if (rank != own_ && fresh(rank) && of(rank).doing == News::Kind::kWorks) verdict.at_work = rank;
        }
        return verdict;
    }
    Clock::time_point since = start;
    for (int rank = peer;;) {
        if (silent_for(rank, since) >= timeout) {
            blame_with_others(rank);
            return verdict;
        }
        const Rank& r = of(rank);
        if (!fresh(rank) || r.doing != News::Kind::kWaits || r.waits_for < 0) {
            if (fresh(rank) && r.doing == News::Kind::kWorks) verdict.at_work = rank;
            return verdict;
        }
        verdict.chain.push_back(rank);
        if (r.waits_for == own_ || verdict.chain.size() >= ranks_.size()) {
            // A message under way between the two ends this; two of them for a whole deadline do not exist.
            verdict.wait_for_each_other = seconds(now - r.waits_since) >= timeout;
            return verdict;
        }
        since = r.waits_since;
        rank = r.waits_for;
    }
}

void Watch::fail(int rank, double time) {
    ranks_[static_cast<std::size_t>(rank)].failed = time;
}

Failures Watch::failures() const {
    Failures failures;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        if (of(rank).failed == 0) continue;
        ++failures.count;
        if (failures.first < 0 || of(rank).failed < of(failures.first).failed) failures.first = rank;
    }
    return failures;
}

std::vector<double> Watch::take_paces() {
    std::vector<double> paces;
    for (Rank& rank : ranks_) {
        paces.push_back(rank.pace);
        rank.pace = 0;
    }
    return paces;
}

}  // namespace lockstep

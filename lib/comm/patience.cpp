#include "comm/patience.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"

namespace lockstep {
namespace {

struct Stages {
    double spin_s;
    double yield_s;  // after this, naps
};
// Where ranks outnumber CPUs the peer may need this very core: no spinning. Elsewhere a core has nothing better to do,
// and yielding gives it to whoever has.
constexpr Stages kRoomy{50e-6, 10e-3};
constexpr Stages kCrowded{0, 200e-6};
// A yield that takes longer has given the core to somebody with work to do. A nap costs less then: who has slept is
// served before those who have worked, who has yielded after them.
constexpr std::chrono::microseconds kSlice{100};

// How soon a waiting rank notices that another one has failed.
constexpr double kLookS = 20e-3;

// Polls follow each other within milliseconds. A gap of this part of the deadline means that this rank was stopped
// itself, as a suspended job is: the others could not be heard meanwhile, and may still be stopped.
constexpr double kStoppedPart = 0.5;

// The longer the wait, the less a late wake-up matters.
double nap_length(double waited) {
    return waited < 20e-3 ? 50e-6 : waited < 0.2 ? 100e-6 : 1e-3;
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

std::string list_of(const std::vector<int>& ranks) {
    std::string text;
    for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return text;
}

}  // namespace

Patience::Patience(Communicator& comm)
    : comm_(comm), job_(comm.job()), crowded_(job_.local_size() > job_.local_cpus()) {}

void Patience::pause(int peer) {
    const Clock::time_point now = Clock::now();
    if (!waiting_) {
        waiting_ = true;
        start_ = now;
        next_look_s_ = next_announcement_s_ = next_warning_s_ = 0;
    } else if (job_.timeout() > 0 &&
               std::chrono::duration<double>(now - last_).count() >= kStoppedPart * job_.timeout()) {
        start_ = now;  // the full deadline again
        next_look_s_ = next_announcement_s_ = next_warning_s_ = 0;
    }
    last_ = now;
    const double waited = std::chrono::duration<double>(now - start_).count();
    const Stages& stages = crowded_ ? kCrowded : kRoomy;
    if (waited < stages.spin_s) {
        relax();
        return;
    }
    if (waited < stages.yield_s && !contested_) {
        sched_yield();
        contested_ = Clock::now() - now > kSlice;
        return;
    }
    if (waited >= next_look_s_) look_around(comm_.job_rank(peer), now, waited);
    job_.nap(nap_length(waited));
}

// Now and then in a long wait: hears what the others say, tells them who is waited for, and at the deadline judges.
void Patience::look_around(int peer, Clock::time_point now, double waited) {
    next_look_s_ = waited + kLookS;
    job_.collect_news();
    const int failed = job_.watch().failures().first;
    if (failed >= 0 && failed != job_.rank()) throw PeerFailed(job_.rank(), failed);
    const double timeout = job_.timeout();
    if (timeout <= 0) return;
    next_look_s_ = waited + std::min(kLookS, timeout / 16);
    if (waited >= std::max(timeout / 4, next_announcement_s_)) {
        job_.tell_all({News::Kind::kWaits, peer, waited});
        next_announcement_s_ = waited + timeout / 8;
    }
    if (waited >= timeout) judge(peer, now, waited);
}

void Patience::judge(int peer, Clock::time_point now, double waited) {
    const double timeout = job_.timeout();
    const Watch::Verdict verdict = job_.watch().judge(peer, start_, now, timeout);
    if (!verdict.silent.empty()) {
        job_.announce_failure();  // while what messages under way point to still exists
        const bool several = verdict.silent.size() > 1;
        const std::string told = fmt::format("{} {} did not answer for {:g} s (device.timeout_s)",
                                             several ? "ranks" : "rank", list_of(verdict.silent), timeout);
        if (several || verdict.chain.empty()) throw Error(ErrorKind::kRuntime, told);
        fail(ErrorKind::kRuntime, "{}: rank {} waits for it through rank {}", told, job_.rank(),
             list_of(verdict.chain));
    }
    if (verdict.wait_for_each_other) {
        job_.announce_failure();
        fail(ErrorKind::kRuntime, "rank {} did not answer for {:g} s (device.timeout_s): ranks wait for each other",
             peer, timeout);
    }
    if (verdict.at_work >= 0) last_work_ = now;
    if (peer < 0 && std::chrono::duration<double>(now - std::max(start_, last_work_)).count() >= 2 * timeout) {
        job_.announce_failure();
        fail(ErrorKind::kRuntime, "an all-reduce did not end within {:g} s (twice device.timeout_s)", 2 * timeout);
    }
    if (waited < next_warning_s_) return;
    next_warning_s_ = std::max(next_warning_s_, timeout) * 2;
    if (verdict.at_work >= 0) {
        warn("rank {} has been waited for {:.0f} s; it says that it is at work", verdict.at_work, waited);
    }
}

}  // namespace lockstep

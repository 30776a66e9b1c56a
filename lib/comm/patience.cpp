#include "comm/patience.hpp"

#include <sched.h>

#include <string>
#include <vector>

#include "core/error.hpp"

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

Patience::Patience(Communicator& comm) : comm_(comm), crowded_(comm.local_size() > comm.local_cpus()) {}

void Patience::pause(int peer) {
    const Clock::time_point now = Clock::now();
    if (!waiting_) {
        waiting_ = true;
        start_ = now;
        next_announcement_s_ = 0;
    }
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
    const double timeout = comm_.timeout();
    if (timeout > 0) {
        if (waited >= timeout) give_up(peer);
        // From half the deadline on, every eighth of it.
        if (waited >= timeout / 2 && waited >= next_announcement_s_) {
            comm_.announce_wait(peer, next_announcement_s_ == 0);
            next_announcement_s_ = waited + timeout / 8;
        }
    }
    comm_.nap(nap_length(waited));
}

// Everybody behind a silent rank runs into the deadline at about the same time. The waits announced meanwhile tell who
// only waits in turn.
void Patience::give_up(int peer) {
    const double timeout = comm_.timeout();
    if (peer < 0) {
        std::vector<int> silent;
        for (int rank = 0; rank < comm_.size(); ++rank) {
            if (rank != comm_.rank() && comm_.announced_wait(rank) == Communicator::kSilent) silent.push_back(rank);
        }
        if (silent.size() == 1) peer = silent.front();
        if (silent.size() > 1) {
            fail(ErrorKind::kRuntime, "ranks {} did not answer for {:g} s (device.timeout_s)", list_of(silent),
                 timeout);
        }
        if (silent.empty())
            fail(ErrorKind::kRuntime, "an all-reduce did not end within {:g} s (device.timeout_s)", timeout);
    }
    std::vector<int> chain{peer};
    for (int next = comm_.announced_wait(peer); next >= 0; next = comm_.announced_wait(chain.back())) {
        if (next == comm_.rank() || static_cast<int>(chain.size()) >= comm_.size()) {
            fail(ErrorKind::kRuntime, "rank {} did not answer for {:g} s (device.timeout_s): ranks wait for each other",
                 peer, timeout);
        }
        chain.push_back(next);
    }
    if (chain.size() == 1)
        fail(ErrorKind::kRuntime, "rank {} did not answer for {:g} s (device.timeout_s)", peer, timeout);
    const int silent = chain.back();
    chain.pop_back();
    fail(ErrorKind::kRuntime,
         "rank {} did not answer for {:g} s (device.timeout_s): rank {} waits for it through rank {}", silent, timeout,
         comm_.rank(), list_of(chain));
}

}  // namespace lockstep

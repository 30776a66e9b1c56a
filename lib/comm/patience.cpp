#include "comm/patience.hpp"

#include <sched.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {
namespace {

constexpr double kSpin = 50e-6;
constexpr double kYield = 500e-6;  // after this, naps

// The longer the wait, the less a late wake-up matters.
double nap_length(double waited) {
    return waited < 2e-3 ? 50e-6 : waited < 0.1 ? 100e-6 : 1e-3;
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

// Where ranks outnumber cores the peer may need this very core: no spinning at all.
Patience::Patience(Communicator& comm) : comm_(comm), spin_s_(comm.local_size() > available_cpus() ? 0 : kSpin) {}

void Patience::pause(int peer) {
    const Clock::time_point now = Clock::now();
    if (!waiting_) {
        waiting_ = true;
        start_ = now;
        next_announcement_s_ = 0;
    }
    const double waited = std::chrono::duration<double>(now - start_).count();
    if (waited < spin_s_) {
        relax();
        return;
    }
    if (waited < kYield) {
        sched_yield();
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

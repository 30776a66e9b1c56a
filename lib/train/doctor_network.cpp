#include "train/doctor_network.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/reducer.hpp"
#include "train/clock_offset.hpp"

namespace lockstep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkFacts, rank, host, latency_s, bytes_per_s, clock_offset_s, clock_error_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReduceTime, bytes, seconds)
void to_json(nlohmann::json& json, const NetworkFacts& facts) {
    json = {{"links", facts.links}, {"all_reduce", facts.all_reduce}, {"sums_right", facts.sums_right}};
}

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kLinksBudget_s = 0.8;   // for all links together
constexpr double kReduceBudget_s = 0.2;  // for each size
constexpr int kPings = 20;
constexpr int64_t kSmallBlock = 64 << 10;
constexpr int64_t kLargeBlock = 1 << 20;
constexpr int kTag = 1;

int64_t wall_ns() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

/// Rank 0's side of a link, or the other's. Each round rank 0 says how many bytes come and go; 0 is a ping; -1 is the
/// end.
class Link {
  public:
    Link(Communicator& comm, int peer) : comm_(comm), peer_(peer) {}

    LinkFacts measure(const std::string& host, double budget) {
        LinkFacts facts{peer_, host, 0, 0, 0, 0};
        const Clock::time_point start = Clock::now();
        std::vector<double> trips;
        for (int i = 0; i < kPings; ++i) trips.push_back(ping());
        std::nth_element(trips.begin(), trips.begin() + kPings / 2, trips.end());
        facts.latency_s = trips[kPings / 2] / 2;
        const double small = exchange(kSmallBlock);
        facts.bytes_per_s = 2.0 * static_cast<double>(kSmallBlock) / small;
        const bool large = small * 3 * static_cast<double>(kLargeBlock / kSmallBlock) < budget;
        const int64_t block = large ? kLargeBlock : kSmallBlock;
        for (int i = 0; i < 5 && (i == 0 || seconds_since(start) < budget); ++i) {
            facts.bytes_per_s = std::max(facts.bytes_per_s, 2.0 * static_cast<double>(block) / exchange(block));
        }
        say(-1);
        return facts;
    }

    void answer() {
        for (;;) {
            std::array<int64_t, 1> bytes{};
            comm_.send_recv(Communicator::kNobody, {}, peer_, std::as_writable_bytes(std::span(bytes)), kTag);
            if (bytes[0] < 0) return;
            if (bytes[0] == 0) {
                say(0);
                continue;
            }
            memory_.resize(static_cast<std::size_t>(bytes[0]));
            comm_.send_recv(Communicator::kNobody, {}, peer_, memory_, kTag);
            comm_.send_recv(peer_, memory_, Communicator::kNobody, {}, kTag);
        }
    }

  private:
    void say(int64_t number) {
        const std::array<int64_t, 1> out{number};
        comm_.send_recv(peer_, std::as_bytes(std::span(out)), Communicator::kNobody, {}, kTag);
    }

    double ping() {
        std::array<int64_t, 1> answer{};
        const Clock::time_point start = Clock::now();
        say(0);
        comm_.send_recv(Communicator::kNobody, {}, peer_, std::as_writable_bytes(std::span(answer)), kTag);
        return seconds_since(start);
    }

    double exchange(int64_t bytes) {
        memory_.resize(static_cast<std::size_t>(bytes));
        say(bytes);
        const Clock::time_point start = Clock::now();
        comm_.send_recv(peer_, memory_, Communicator::kNobody, {}, kTag);
        comm_.send_recv(Communicator::kNobody, {}, peer_, memory_, kTag);
        return seconds_since(start);
    }

    Communicator& comm_;
    int peer_;
    std::vector<std::byte> memory_;
};

/// Whatever one rank has, on all of them.
template <class T>
std::vector<T> gather(Communicator& comm, const T& own) {
    std::vector<T> all;
    for (const auto& bytes : comm.all_gather(std::as_bytes(std::span(&own, 1)))) {
        std::memcpy(&all.emplace_back(), bytes.data(), sizeof(T));
    }
    return all;
}

std::vector<LinkFacts> measure_links(Communicator& comm, const std::vector<std::string>& hosts) {
    std::vector<int> peers;
    std::set<std::string> seen{hosts.front()};
    for (std::size_t rank = 1; rank < hosts.size(); ++rank) {
        if (seen.insert(hosts[rank]).second) peers.push_back(static_cast<int>(rank));
    }
    // Ranks of rank 0's host read the same clock.
    const std::vector<ClockOffset> offsets =
        gather(comm, clock_offset(comm, hosts[static_cast<std::size_t>(comm.rank())], [] { return wall_ns(); }));
    std::vector<LinkFacts> links;
    for (const int peer : peers) {
        if (comm.rank() == 0) {
            LinkFacts link =
                Link(comm, peer)
                    .measure(hosts[static_cast<std::size_t>(peer)], kLinksBudget_s / static_cast<double>(peers.size()));
            const ClockOffset& offset = offsets[static_cast<std::size_t>(peer)];
            link.clock_offset_s = -1e-9 * static_cast<double>(offset.ns);
            link.clock_error_s = 1e-9 * static_cast<double>(offset.uncertainty_ns);
            links.push_back(link);
        } else if (comm.rank() == peer) {
            Link(comm, 0).answer();
        }
    }
    return links;
}

/// What every rank must decide alike: the slowest rank's time.
double slowest(Communicator& comm, double seconds) {
    const std::vector<double> times = gather(comm, seconds);
    return *std::max_element(times.begin(), times.end());
}

/// One size: every rank contributes one shard, as in a training step in which V = W.
class ReduceTimer {
  public:
    ReduceTimer(Communicator& comm, int64_t bytes)
        : comm_(comm),
          elements_(bytes / 4),
          sizes_(static_cast<std::size_t>(comm.size()), 1),
          values_(static_cast<std::size_t>(layout_.lead + elements_), 0.0F),
          reducer_(
              make_canonical_reducer(comm, comm.size(), {layout_.lead, elements_}, 4 << 20, 32 << 10, plain_adder())) {}

    /// The first one also makes its plans and scratch. True where the sum of ones is the number of ranks, on every
    /// rank.
    bool check() {
        std::fill(values_.begin(), values_.end(), 1.0F);
        run(1);
        const auto expected = static_cast<float>(comm_.size());
        const bool right = std::all_of(values_.begin(), values_.end(), [&](float value) { return value == expected; });
        std::fill(values_.begin(), values_.end(), 0.0F);
        return slowest(comm_, right ? 0 : 1) == 0;
    }

    double run(int times) {
        float* const partial = values_.data();
        comm_.barrier();
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < times; ++i) {
            reducer_->begin(sizes_, std::span(&partial, 1));
            reducer_->ready(0);
            reducer_->finish();
        }
        return slowest(comm_, seconds_since(start)) / times;
    }

  private:
    Communicator& comm_;
    ReduceLayout layout_;
    int64_t elements_;
    std::vector<int64_t> sizes_;
    std::vector<float> values_;
    std::unique_ptr<Reducer> reducer_;
};

}  // namespace

NetworkFacts measure_network(Communicator& comm, const std::vector<std::string>& hosts) {
    NetworkFacts facts;
    if (comm.size() == 1) return facts;
    facts.links = measure_links(comm, hosts);
    for (const int64_t bytes : {int64_t{4}, int64_t{64} << 10, int64_t{1} << 20, int64_t{4} << 20}) {
        // A size that would take too long, by the one before it, is left out: by all ranks alike.
        if (!facts.all_reduce.empty() && facts.all_reduce.back().bytes > 4) {
            const ReduceTime& last = facts.all_reduce.back();
            if (last.seconds * static_cast<double>(bytes / last.bytes) > 2 * kReduceBudget_s) break;
        }
        ReduceTimer timer(comm, bytes);
        facts.sums_right = timer.check() && facts.sums_right;
        const double once = timer.run(1);
        const int times = std::clamp(static_cast<int>(kReduceBudget_s / 2 / std::max(once, 1e-7)), 1, 200);
        facts.all_reduce.push_back({bytes, std::min(once, timer.run(times))});
    }
    return facts;
}

}  // namespace lockstep

// Three ways to the same additions.
//
// Halving (Rabenseifner), where V and W are powers of two and every rank has a sample, so that every rank holds one
// node and the nodes of ranks r and r^1 are siblings: with partner r ^ 1, then r ^ 2, r ^ 4, … a rank gives half of its
// segment away and adds the partner's half to its own. Nearest first, since then every addition joins two siblings of
// the canonical tree; the usual farthest-first order would add shards 0 and V/2. The way back (doubling) only copies.
//
// Doubling of the whole vector in the same order of partners: more bytes, half the messages, for small buckets.
//
// Nodes, in all other cases: the bucket is cut into one slice a rank. Every rank sends each maximal node that it holds,
// slice by slice, to the slice's owner, who adds them up the tree and sends the finished slice to everybody. Ranks
// without a node have no gradient but may have raised a flag: their leads first go to the holder of the leftmost node.
#include "comm/reduce_plan.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int64_t kGrain = 16;  // segment borders: one cache line of floats

int64_t round_up(int64_t value, int64_t grain) {
    return (value + grain - 1) / grain * grain;
}

// Elements of one bucket. The lead is part of the segment that begins at 0 and does not count where segments are cut.
struct Segment {
    int64_t begin;
    int64_t end;
    bool empty() const { return end <= begin; }
};

class PlanBuilder {
  public:
    PlanBuilder(int shards, int rank, int world, std::span<const int64_t> sizes, int64_t elements, int64_t lead)
        : shards_(shards), elements_(elements), lead_(lead) {
        plan_.rank = rank;
        plan_.world = world;
        for (int r = 0; r < world; ++r) {
            const auto nodes = maximal_nodes(shards, shards_of_rank(shards, r, world), sizes);
            first_value_.push_back(static_cast<int>(nodes_.size()));
            nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
        }
        first_value_.push_back(static_cast<int>(nodes_.size()));
        if (nodes_.empty()) fail(ErrorKind::kRuntime, "a step in which all {} shards are empty has no sum", shards);
        plan_.roots = values_of(rank);
    }

    ReducePlan build(int64_t small_bytes) {
        choose(small_bytes);
        switch (plan_.method) {
            case ReduceMethod::kAlone:
                break;
            case ReduceMethod::kDoubling:
                doubling();
                break;
            case ReduceMethod::kHalving:
                halving();
                break;
            case ReduceMethod::kNodes:
                nodes();
                break;
        }
        plan_.buffers = std::max(plan_.roots, 1) + static_cast<int>(plan_.scratch.size());
        return std::move(plan_);
    }

  private:
    int values_of(int rank) const {
        return first_value_[static_cast<size_t>(rank) + 1] - first_value_[static_cast<size_t>(rank)];
    }

    void choose(int64_t small_bytes) {
        const auto power_of_two = [](int n) { return std::has_single_bit(static_cast<unsigned>(n)); };
        const int world = plan_.world;
        bool everybody = true;
        for (int r = 0; r < world; ++r) everybody &= values_of(r) > 0;
        if (world == 1) {
            plan_.method = ReduceMethod::kAlone;
        } else if (!power_of_two(shards_) || !power_of_two(world) || world > shards_ || !everybody) {
            plan_.method = ReduceMethod::kNodes;
        } else if ((elements_ - lead_) * int64_t{sizeof(float)} <= small_bytes) {
            plan_.method = ReduceMethod::kDoubling;
        } else {
            plan_.method = ReduceMethod::kHalving;
        }
    }

    void send(int to, Segment part, int from) {
        if (part.empty()) return;
        plan_.steps.push_back({ReduceStep::Kind::kSend, plan_.phases, to, part.begin, part.end, from, -1, -1});
        plan_.bytes_sent += (part.end - std::max(part.begin, std::min(lead_, part.end))) * int64_t{sizeof(float)};
        plan_.messages += 1;
    }
    void receive(int from, Segment part, int into) {
        if (part.empty()) return;
        plan_.steps.push_back({ReduceStep::Kind::kReceive, plan_.phases, from, part.begin, part.end, -1, into, -1});
    }
    void add(Segment part, int into, int left, int right) {
        if (part.empty()) return;
        plan_.steps.push_back({ReduceStep::Kind::kAdd, plan_.phases, -1, part.begin, part.end, left, into, right});
    }
    // Ends a phase, if there was anything in it.
    void next_phase() {
        if (!plan_.steps.empty() && plan_.steps.back().phase == plan_.phases) plan_.phases += 1;
    }
    int new_scratch(Segment part) {
        plan_.scratch.push_back({part.begin, part.end});
        return std::max(plan_.roots, 1) + static_cast<int>(plan_.scratch.size()) - 1;
    }

    // The sum of two siblings, of which the lower rank's is the left one.
    void add_sibling(Segment part, int partner, int other) {
        if (partner < plan_.rank) {
            add(part, 0, other, 0);
        } else {
            add(part, 0, 0, other);
        }
    }

    void doubling() {
        const Segment all{0, elements_};
        const int other = new_scratch(all);
        for (int distance = 1; distance < plan_.world; distance *= 2) {
            const int partner = plan_.rank ^ distance;
            send(partner, all, 0);
            receive(partner, all, other);
            next_phase();
            add_sibling(all, partner, other);
            next_phase();
        }
    }

    void halving() {
        struct Stage {
            int partner;
            Segment kept;
            Segment given;
        };
        std::vector<Stage> stages;
        Segment segment{0, elements_};
        for (int distance = 1; distance < plan_.world; distance *= 2) {
            const int64_t gradients = segment.end - std::max(segment.begin, lead_);
            const int64_t lower = round_up((gradients + 1) / 2, kGrain);
            const int64_t middle = std::min(segment.end, std::max(segment.begin, lead_) + lower);
            Segment kept{segment.begin, middle};
            Segment given{middle, segment.end};
            if ((plan_.rank & distance) != 0) std::swap(kept, given);
            stages.push_back({plan_.rank ^ distance, kept, given});
            segment = kept;
        }
        const int other = new_scratch(stages.front().kept);
        for (const Stage& stage : stages) {
            send(stage.partner, stage.given, 0);
            receive(stage.partner, stage.kept, other);
            next_phase();
            add_sibling(stage.kept, stage.partner, other);
            next_phase();
        }
        for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
            send(stage->partner, stage->kept, 0);
            receive(stage->partner, stage->given, 0);
            next_phase();
        }
    }

    Segment slice(int owner) const {
        const int64_t gradients = elements_ - lead_;
        const auto border = [&](int64_t s) {
            const int64_t even = (gradients * s + plan_.world - 1) / plan_.world;
            return s == 0 ? 0 : lead_ + std::min(gradients, round_up(even, kGrain));
        };
        return {border(owner), border(owner + 1)};
    }

    // Partners by distance, so that nobody is everybody's first target and a bounded number of requests cannot lock up.
    template <class Body>
    void by_distance(Body body) const {
        for (int distance = 1; distance < plan_.world; ++distance) {
            body((plan_.rank + distance) % plan_.world, (plan_.rank - distance + plan_.world) % plan_.world);
        }
    }

    // The leads of idle ranks, added to that of the leftmost node (flags are small integers, an idle rank's loss is 0).
    void collect_idle_leads() {
        const Segment lead{0, lead_};
        int holder = 0;
        while (values_of(holder) == 0) ++holder;
        if (plan_.roots == 0) send(holder, lead, 0);
        std::vector<int> leads;
        for (int r = 0; r < plan_.world && plan_.rank == holder; ++r) {
            if (values_of(r) > 0) continue;
            leads.push_back(new_scratch(lead));
            receive(r, lead, leads.back());
        }
        next_phase();
        for (const int idle : leads) add(lead, 0, 0, idle);
        next_phase();
    }

    void nodes() {
        collect_idle_leads();
        const Segment mine = slice(plan_.rank);
        const int own = first_value_[static_cast<size_t>(plan_.rank)];
        std::vector<int> buffer_of_value(nodes_.size());
        for (int value = 0; value < static_cast<int>(nodes_.size()); ++value) {
            int& buffer = buffer_of_value[static_cast<size_t>(value)];
            if (value >= own && value < own + plan_.roots) {
                buffer = value - own;
            } else if (value == 0 && plan_.roots == 0) {
                buffer = 0;  // the total is made where it belongs
            } else {
                buffer = new_scratch(mine);
            }
        }
        by_distance([&](int to, int from) {
            for (int root = 0; root < plan_.roots; ++root) send(to, slice(to), root);
            for (int value = first_value_[static_cast<size_t>(from)];
                 value < first_value_[static_cast<size_t>(from) + 1]; ++value) {
                receive(from, mine, buffer_of_value[static_cast<size_t>(value)]);
            }
        });
        next_phase();
        const std::vector<JoinStep> joins = join_program(shards_, nodes_);
        for (size_t i = 0; i < joins.size(); ++i) {
            const int left = buffer_of_value[static_cast<size_t>(joins[i].into)];
            const int right = buffer_of_value[static_cast<size_t>(joins[i].from)];
            add(mine, i + 1 == joins.size() ? 0 : left, left, right);  // the last one reads all that is left: 0 is free
        }
        next_phase();
        by_distance([&](int to, int from) {
            send(to, mine, 0);
            receive(from, slice(from), 0);
        });
        next_phase();
    }

    int shards_;
    int64_t elements_;
    int64_t lead_;
    std::vector<ShardRange> nodes_;  // non-empty maximal nodes of all ranks: the values to be joined
    std::vector<int> first_value_;   // by rank, and the end
    ReducePlan plan_;
};

}  // namespace

ReducePlan make_reduce_plan(int shards, int rank, int world, std::span<const int64_t> sizes, int64_t elements,
                            int64_t lead, int64_t small_bytes) {
    return PlanBuilder(shards, rank, world, sizes, elements, lead).build(small_bytes);
}

int64_t scratch_floats(const ReducePlan& plan) {
    int64_t floats = 0;
    for (const ScratchExtent& extent : plan.scratch) floats += extent.padded();
    return floats;
}

std::vector<Bucket> make_buckets(int64_t elements, int64_t bucket_bytes) {
    const int64_t most = std::max(kGrain, bucket_bytes / int64_t{sizeof(float)} / kGrain * kGrain);
    std::vector<Bucket> buckets;
    for (int64_t end = elements; end > 0;) {
        const int64_t begin = std::max(int64_t{0}, round_up(end - most, kGrain));
        buckets.push_back({begin, end});
        end = begin;
    }
    if (buckets.empty()) buckets.push_back({0, 0});
    return buckets;
}

int64_t ring_bytes(int64_t gradient_bytes, int world) {
    return (2 * (world - 1) * gradient_bytes + world - 1) / world;
}

}  // namespace lockstep

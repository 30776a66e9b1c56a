// Runs the reduce plans of all ranks without a transport, on symbols: a value is an expression over shards ("(0+1)") of
// one element. Messages are strict: a send ends only when it is received, and nothing may be written while it is under
// way.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/reduce_plan.hpp"

namespace lockstep::test {

/// Expressions, each with one number.
class Expressions {
  public:
    int shard(int v) { return number({-1, v}); }
    int flags_of_rank(int r) { return number({-2, r}); }
    int sum(int left, int right) { return number({left, right}); }

    /// The canonical sum of the non-empty shards of a node; -1 if there are none.
    int canonical(ShardRange node, std::span<const int64_t> sizes) {
        if (node.size() == 1) return sizes[static_cast<size_t>(node.begin)] > 0 ? shard(node.begin) : -1;
        const int middle = split_point(node.begin, node.end);
        const int left = canonical({node.begin, middle}, sizes);
        const int right = canonical({middle, node.end}, sizes);
        return left < 0 ? right : right < 0 ? left : sum(left, right);
    }

  private:
    int number(std::pair<int, int> expression) {
        return numbers_.try_emplace(expression, static_cast<int>(numbers_.size())).first->second;
    }
    std::map<std::pair<int, int>, int> numbers_;
};

struct Symbol {
    int expression = -1;  // -1: garbage
    int64_t element = -1;
    bool operator==(const Symbol&) const = default;
};

class PlanSimulation {
  public:
    PlanSimulation(int shards, std::span<const int64_t> sizes, int64_t elements, std::vector<ReducePlan> plans,
                   int64_t lead = 0)
        : elements_(elements), lead_(lead), plans_(std::move(plans)), states_(plans_.size()) {
        for (size_t r = 0; r < plans_.size(); ++r) {
            const auto nodes = maximal_nodes(shards, shards_of_rank(shards, static_cast<int>(r), world()), sizes);
            auto& buffers = states_[r].buffers;
            buffers.assign(static_cast<size_t>(plans_[r].buffers), {});
            for (size_t b = 0; b < buffers.size(); ++b) buffers[b].resize(static_cast<size_t>(elements));
            for (size_t root = 0; root < nodes.size(); ++root) {
                const int expression = expressions_.canonical(nodes[root], sizes);
                for (int64_t e = 0; e < elements; ++e) buffers[root][static_cast<size_t>(e)] = {expression, e};
            }
            if (static_cast<int>(nodes.size()) != plans_[r].roots) fault_ = "wrong number of roots";
            if (nodes.empty()) {
                const int flags = expressions_.flags_of_rank(static_cast<int>(r));
                for (int64_t e = 0; e < lead; ++e) buffers[0][static_cast<size_t>(e)] = {flags, e};
            }
        }
        total_ = expressions_.canonical({0, shards}, sizes);
        total_lead_ = lead > 0 ? lead_total(shards, sizes) : -1;
    }

    /// "" if every rank ends with the canonical total in buffer 0; otherwise what went wrong.
    std::string run() {
        for (bool moved = true; moved && fault_.empty();) {
            moved = false;
            for (int r = 0; r < world() && fault_.empty(); ++r) moved |= advance(r);
        }
        for (int r = 0; r < world() && fault_.empty(); ++r) {
            if (state(r).step < plan(r).steps.size()) fault_ = "rank " + std::to_string(r) + " is stuck";
            for (int64_t e = 0; e < elements_ && fault_.empty(); ++e) {
                if (state(r).buffers[0][static_cast<size_t>(e)] != Symbol{e < lead_ ? total_lead_ : total_, e}) {
                    fault_ = "rank " + std::to_string(r) + " has another sum in element " + std::to_string(e);
                }
            }
        }
        for (const auto& [pair, queue] : network_) {
            if (fault_.empty() && !queue.empty()) fault_ = "a message nobody receives";
        }
        return fault_;
    }

  private:
    struct State {
        std::vector<std::vector<Symbol>> buffers;
        size_t step = 0;  // first step of the phase under way
        bool posted = false;
        size_t sent = 0;  // of this phase, not yet received by the peer
        std::vector<bool> arrived;
    };
    struct Message {
        std::vector<Symbol> symbols;
        int from;
    };

    // The tree's sum in which the leftmost node of all has the leads of idle ranks added to it, in rank order.
    int lead_total(int shards, std::span<const int64_t> sizes) {
        std::vector<ShardRange> nodes;
        std::vector<int> idle;
        for (int r = 0; r < world(); ++r) {
            const auto own = maximal_nodes(shards, shards_of_rank(shards, r, world()), sizes);
            nodes.insert(nodes.end(), own.begin(), own.end());
            if (own.empty()) idle.push_back(r);
        }
        std::vector<int> values;
        for (const ShardRange& node : nodes) values.push_back(expressions_.canonical(node, sizes));
        for (const int r : idle) values[0] = expressions_.sum(values[0], expressions_.flags_of_rank(r));
        for (const JoinStep& step : join_program(shards, nodes)) {
            int& into = values[static_cast<size_t>(step.into)];
            into = expressions_.sum(into, values[static_cast<size_t>(step.from)]);
        }
        return values[0];
    }

    int world() const { return static_cast<int>(plans_.size()); }
    const ReducePlan& plan(int r) const { return plans_[static_cast<size_t>(r)]; }
    State& state(int r) { return states_[static_cast<size_t>(r)]; }

    bool inside(const ReducePlan& p, int buffer, const ReduceStep& s) const {
        const int whole = p.roots > 0 ? p.roots : 1;
        if (buffer < whole) return s.begin >= 0 && s.end <= elements_;
        const ScratchExtent& extent = p.scratch[static_cast<size_t>(buffer - whole)];
        return s.begin >= extent.begin && s.end <= extent.end;
    }

    void check_phase(const ReducePlan& p, size_t begin, size_t end) {
        using Kind = ReduceStep::Kind;
        for (size_t i = begin; i < end; ++i) {
            const ReduceStep& a = p.steps[i];
            if (a.begin >= a.end) fault_ = "an empty step";
            for (const int buffer : {a.from, a.into, a.right}) {
                if (buffer >= 0 && !inside(p, buffer, a)) fault_ = "a step leaves its buffer";
            }
            if (a.kind != Kind::kReceive) continue;
            for (size_t j = begin; j < end; ++j) {
                const ReduceStep& b = p.steps[j];
                const int touched = b.kind == Kind::kSend ? b.from : b.into;
                if (i != j && touched == a.into && a.begin < b.end && b.begin < a.end)
                    fault_ = "a receive into memory in use";
            }
        }
    }

    bool advance(int r) {
        using Kind = ReduceStep::Kind;
        const ReducePlan& p = plan(r);
        State& s = state(r);
        if (s.step == p.steps.size()) return false;
        size_t end = s.step;
        while (end < p.steps.size() && p.steps[end].phase == p.steps[s.step].phase) ++end;
        if (p.steps[s.step].kind == Kind::kAdd) {
            for (; s.step < end; ++s.step) add(s, p.steps[s.step]);
            return true;
        }
        bool moved = false;
        if (!s.posted) {
            check_phase(p, s.step, end);
            if (!fault_.empty()) return false;
            for (size_t i = s.step; i < end; ++i) {
                if (p.steps[i].kind == Kind::kSend) send(r, p.steps[i]);
            }
            s.arrived.assign(end - s.step, false);
            s.posted = moved = true;
        }
        bool all = s.sent == 0;
        for (size_t i = s.step; i < end; ++i) {
            if (p.steps[i].kind != Kind::kReceive || s.arrived[i - s.step]) continue;
            if (receive(r, p.steps[i])) {
                s.arrived[i - s.step] = true;
                moved = true;
            } else {
                all = false;
            }
        }
        if (all) {
            s.step = end;
            s.posted = false;
        }
        return moved || all;
    }

    void send(int r, const ReduceStep& step) {
        const auto& buffer = state(r).buffers[static_cast<size_t>(step.from)];
        network_[{r, step.peer}].push_back({{buffer.begin() + step.begin, buffer.begin() + step.end}, r});
        state(r).sent += 1;
    }

    bool receive(int r, const ReduceStep& step) {
        auto& queue = network_[{step.peer, r}];
        if (queue.empty()) return false;
        if (static_cast<int64_t>(queue.front().symbols.size()) != step.end - step.begin) {
            fault_ = "a message of another length than expected";
            return false;
        }
        auto& buffer = state(r).buffers[static_cast<size_t>(step.into)];
        std::copy(queue.front().symbols.begin(), queue.front().symbols.end(), buffer.begin() + step.begin);
        queue.pop_front();
        state(step.peer).sent -= 1;
        return true;
    }

    void add(State& s, const ReduceStep& step) {
        for (auto e = static_cast<size_t>(step.begin); e < static_cast<size_t>(step.end); ++e) {
            const Symbol left = s.buffers[static_cast<size_t>(step.from)][e];
            const Symbol right = s.buffers[static_cast<size_t>(step.right)][e];
            const bool fine = left.expression >= 0 && right.expression >= 0 && left.element == right.element;
            Symbol& sum = s.buffers[static_cast<size_t>(step.into)][e];
            // Neighbouring elements nearly always add the same expressions.
            if (fine && (left.expression != last_.first || right.expression != last_.second)) {
                last_ = {left.expression, right.expression};
                last_sum_ = expressions_.sum(left.expression, right.expression);
            }
            sum = fine ? Symbol{last_sum_, left.element} : Symbol{};
        }
    }

    int64_t elements_;
    int64_t lead_;
    std::vector<ReducePlan> plans_;
    std::vector<State> states_;
    Expressions expressions_;
    std::pair<int, int> last_{-1, -1};
    int last_sum_ = -1;
    int total_ = -1;
    int total_lead_ = -1;
    std::map<std::pair<int, int>, std::deque<Message>> network_;
    std::string fault_;
};

inline std::vector<ReducePlan> plans_of_world(int shards, int world, std::span<const int64_t> sizes, int64_t elements,
                                              int64_t lead, int64_t small_bytes) {
    std::vector<ReducePlan> plans;
    for (int r = 0; r < world; ++r)
        plans.push_back(make_reduce_plan(shards, r, world, sizes, elements, lead, small_bytes));
    return plans;
}

}  // namespace lockstep::test

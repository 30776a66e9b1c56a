#include "comm/reduce_lane.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr int kSlotsPerLane = (Communicator::kSlots - 2) / kReduceLanes;  // the last two are send_recv's
constexpr int kFirstTag = 1024;
// Below 8192 all told, so that a part of a job can shift them (sub_communicator.cpp). Messages of one tag arrive in
// order, so tags may recur.
constexpr int kTags = 7168;

}  // namespace

ReduceLane::ReduceLane() : requests_(kSlotsPerLane, nullptr) {}

void ReduceLane::reserve(int number, const ReducePlan& plan, const ScratchMaker& scratch) {
    first_slot_ = number * kSlotsPerLane;
    const int64_t floats = scratch_floats(plan);
    if (floats > capacity_) {
        capacity_ = floats;
        scratch_.reset();
        scratch_ = scratch(floats);
    }
    buffers_.reserve(static_cast<std::size_t>(plan.buffers));
}

void ReduceLane::start(int bucket, const ReducePlan& plan, std::span<float* const> partial, int64_t offset) {
    plan_ = &plan;
    bucket_ = bucket;
    posted_ = done_ = 0;
    buffers_.clear();
    for (int root = 0; root < std::max(plan.roots, 1); ++root) {
        buffers_.push_back({partial[static_cast<std::size_t>(root)] + offset, 0});
    }
    float* next = scratch_.get();
    for (const ScratchExtent& extent : plan.scratch) {
        buffers_.push_back({next, extent.begin});
        next += extent.padded();
    }
}

bool ReduceLane::advance(Communicator& comm, const Adder& adder) {
    bool moved = false;
    const std::vector<ReduceStep>& steps = plan_->steps;
    while (done_ < steps.size()) {
        const ReduceStep& step = steps[done_];
        if (step.kind == ReduceStep::Kind::kAdd) {
            add_phase(adder);
        } else {
            while (posted_ < steps.size() && steps[posted_].phase == step.phase && posted_ - done_ < kSlotsPerLane) {
                post(comm, steps[posted_]);
                ++posted_;
            }
            if (!requests_[done_ % kSlotsPerLane]->test()) return moved;
            ++done_;
        }
        moved = true;
    }
    return moved;
}

/// All additions of a phase, which are of the same elements, in the adder's blocks.
void ReduceLane::add_phase(const Adder& adder) {
    const std::vector<ReduceStep>& steps = plan_->steps;
    const ReduceStep& first = steps[done_];
    std::size_t end = done_;
    while (end < steps.size() && steps[end].phase == first.phase) ++end;
    const int64_t all = first.end - first.begin, block = end - done_ == 1 ? all : std::min(all, adder.block);
    for (int64_t begin = first.begin; begin < first.end; begin += block) {
        for (std::size_t i = done_; i < end; ++i) {
            const ReduceStep& step = steps[i];
            adder(at(step.into, begin), at(step.from, begin), at(step.right, begin),
                  std::min(block, first.end - begin));
        }
    }
    posted_ = done_ = end;
}

void ReduceLane::post(Communicator& comm, const ReduceStep& step) {
    const auto index = posted_ % kSlotsPerLane;
    const int slot = first_slot_ + static_cast<int>(index);
    const int tag = kFirstTag + bucket_ % kTags;
    const auto length = static_cast<std::size_t>(step.end - step.begin);
    if (step.kind == ReduceStep::Kind::kSend) {
        requests_[index] =
            &comm.send(slot, step.peer, tag, std::as_bytes(std::span(at(step.from, step.begin), length)));
    } else {
        requests_[index] =
            &comm.receive(slot, step.peer, tag, std::as_writable_bytes(std::span(at(step.into, step.begin), length)));
    }
}

}  // namespace lockstep

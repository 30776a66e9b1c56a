// One bucket of gradients under way: which steps of its plan are done and which are posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/reduce_plan.hpp"
#include "comm/reducer.hpp"

namespace lockstep {

class ReduceLane {
  public:
    ReduceLane();

    bool busy() const { return plan_ != nullptr; }
    int bucket() const { return bucket_; }
    const ReducePlan& plan() const { return *plan_; }
    void free() { plan_ = nullptr; }

    /// Scratch and places that the plan needs. `number`: of the lane, whose requests are its own.
    void reserve(int number, const ReducePlan& plan, const ScratchMaker& scratch);
    /// `offset`: of the bucket's first element from the beginning of a partial sum (the lead).
    void start(int bucket, const ReducePlan& plan, std::span<float* const> partial, int64_t offset);
    /// Does all that can be done without waiting; whether that was anything. A phase's messages are posted in the order
    /// of the plan, which no limit on their number can lock up (see by_distance).
    bool advance(Communicator& comm, const Adder& adder);
    bool finished() const { return done_ == plan_->steps.size(); }
    int awaited_peer() const { return plan_->steps[done_].peer; }

  private:
    struct Place {
        float* memory;
        int64_t first;  // the element that it begins with
    };
    float* at(int buffer, int64_t element) const {
        const Place& place = buffers_[static_cast<std::size_t>(buffer)];
        return place.memory + (element - place.first);
    }
    void add_phase(const Adder& adder);
    void post(Communicator& comm, const ReduceStep& step);

    int first_slot_ = 0;
    std::shared_ptr<float> scratch_;
    int64_t capacity_ = 0;
    std::vector<Request*> requests_;
    std::vector<Place> buffers_;
    const ReducePlan* plan_ = nullptr;
    int bucket_ = 0;
    std::size_t posted_ = 0;
    std::size_t done_ = 0;
};

}  // namespace lockstep

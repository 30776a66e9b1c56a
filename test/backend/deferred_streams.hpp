// Streams whose work is done only when somebody waits for it, as late as a device may do it: what reads a result
// without waiting, or relies on an order that nobody asked for, finds the old values.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep::test {

class DeferredStream final : public Stream {
  public:
    explicit DeferredStream(int index) : Stream(index) {}

    void push(std::function<void()> work) {
        work_.push_back(std::move(work));
        ++pushed_;
    }
    /// What is pushed from now on comes after all that `before` holds now.
    void follow(DeferredStream& before) {
        if (&before == this) return;
        push([&before, until = before.pushed_] { before.run(until); });
    }
    void run() { run(pushed_); }

  private:
    void run(uint64_t until) {
        while (done_ < until) {
            const std::function<void()> work = std::move(work_.front());
            work_.pop_front();
            ++done_;
            work();
        }
    }

    std::deque<std::function<void()>> work_;
    uint64_t pushed_ = 0;
    uint64_t done_ = 0;
};

}  // namespace lockstep::test

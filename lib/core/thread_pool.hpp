// Threads that run one function in parts. The caller is part 0; waiting spins for at most some microseconds and then
// sleeps on a futex (spinning longer costs a neighbour its time slice). Never decides a bit: parts are index ranges.
#pragma once

#include <cstdint>
#include <memory>

#include "core/function_ref.hpp"

namespace lockstep {

class ThreadPool {
  public:
    /// `threads` >= 1 in all, the caller included.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const;
    /// Calls body(part, parts) once for each part in 0 … size()-1, all at once, and returns when all are done. With one
    /// thread it is a plain call. Not reentrant. The first exception thrown by a part is rethrown here.
    void run(FunctionRef<void(int part, int parts)> body);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Part `part` of `parts` of [0, n), borders at multiples of `grain`: {begin, end}.
struct IndexRange {
    int64_t begin;
    int64_t end;
};
IndexRange part_of(int64_t n, int part, int parts, int64_t grain = 1);

/// CPUs that this process may use (its affinity mask).
int available_cpus();

}  // namespace lockstep

// What a stream, an event or the host is known to come after: for every stream, how many of its pieces of work
// (Fidge 1988, Mattern 1989).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::emulation {

class VectorClock {
  public:
    std::uint64_t at(std::size_t stream) const { return stream < counts_.size() ? counts_[stream] : 0; }

    std::uint64_t tick(std::size_t stream) {
        if (counts_.size() <= stream) counts_.resize(stream + 1);
        return ++counts_[stream];
    }

    /// From now on after everything that `other` is after.
    void join(const VectorClock& other) {
        if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
        for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] = std::max(counts_[i], other.counts_[i]);
    }

  private:
    std::vector<std::uint64_t> counts_;
};

}  // namespace lockstep::emulation

// From the partial gradient sums of every rank to the total on all of them. The canonical reducer adds in the one order
// of the canonical tree whatever W is; the native one leaves the order to the transport.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.hpp"
#include "core/canonical_tree.hpp"
#include "core/function_ref.hpp"

namespace lockstep {

/// dst[i] = left[i] + right[i]; dst may be left or right. The device's addition kernel.
using AddFunction = void (*)(void* device, float* dst, const float* left, const float* right, int64_t n);
struct Adder {
    AddFunction add;
    void* device;
    /// Elements that several additions of the same ones take in turn, so that a cache holds what one writes until the
    /// next one reads it. All of them (kWhole) where each call has its price, as on a GPU. Changes no bit.
    int64_t block = 16 * 1024;
    static constexpr int64_t kWhole = std::numeric_limits<int64_t>::max();
    void operator()(float* dst, const float* left, const float* right, int64_t n) const {
        add(device, dst, left, right, n);
    }
};
Adder plain_adder();  // a scalar loop

/// Memory for so many floats where the sums lie, 64-byte aligned, zeroed; it outlives what is given out.
using ScratchMaker = std::function<std::shared_ptr<float>(int64_t floats)>;
std::shared_ptr<float> host_scratch(int64_t floats);

/// One flat gradient: `lead` floats (loss and flags) directly before `elements` gradient floats. Pointers are to the
/// first lead element. In memory: [lead | elements].
struct ReduceLayout {
    int64_t lead = 16;
    int64_t elements = 0;
};

class Reducer {
  public:
    virtual ~Reducer() = default;
    /// Begins a step. `partial[i]`: this rank's flat sum of maximal node i (core/canonical_tree.hpp maximal_nodes with
    /// `sizes`), in order; when this rank has none, partial[0] still is a buffer for the total, and its lead counts
    /// (flags of a rank without work; zero elsewhere). Afterwards partial[0] holds the total.
    virtual void begin(std::span<const int64_t> sizes, std::span<float* const> partial) = 0;
    /// Gradient elements [first, elements) are final in all partials: their buckets may leave. Makes progress; never
    /// waits.
    virtual void ready(int64_t first) = 0;
    /// Makes progress without waiting.
    virtual void poll() = 0;
    /// The lead is final too: sends what is left and waits for everything.
    virtual void finish() = 0;

    virtual int64_t bytes_sent() const = 0;  // of gradients, since construction
    virtual int64_t messages_sent() const = 0;
    virtual double seconds_waiting() const = 0;  // in finish(), since construction
};

// Sums may lie in memory that the host does not see: they are touched by `comm` and `adder` alone, and both work in the
// order in which they are called. What finish() leaves then is there for whatever that order is kept with.

/// Needs scratch; allocates it once. `shards` is V.
std::unique_ptr<Reducer> make_canonical_reducer(Communicator& comm, int shards, ReduceLayout layout,
                                                int64_t bucket_bytes, int64_t small_bytes, Adder adder,
                                                const ScratchMaker& scratch = host_scratch);
/// Local partial sums are added in tree order, then the transport's all-reduce.
std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, int shards, ReduceLayout layout, int64_t bucket_bytes,
                                             Adder adder, const ScratchMaker& scratch = host_scratch);

}  // namespace lockstep

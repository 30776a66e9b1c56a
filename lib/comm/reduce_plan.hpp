// The messages of a reduction as data, made by pure functions. The reducer runs them, `plan` counts them, tests check
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/canonical_tree.hpp"

namespace lockstep {

/// How the sum of a vector that is spread over W ranks is made.
enum class ReduceMethod {
    kAlone,     // W = 1: nothing to send
    kDoubling,  // whole vector, nearest partner first: log2(W) messages (small buckets; V and W powers of two)
    kHalving,   // recursive halving, nearest first, then doubling: its additions are the canonical tree
    kNodes,  // any V, W and empty shards: every rank sends the maximal nodes it holds, slice by slice, to the slice's
             // owner
};

/// One thing a rank does, in order. Elements are of one bucket: [begin, end). Sends and receives with equal `phase` are
/// under way together; a phase begins when the one before is done. Additions have phases of their own, of the same
/// elements, in order.
struct ReduceStep {
    enum class Kind { kSend, kReceive, kAdd, kCopy } kind;
    int phase;
    int peer;            // kSend, kReceive
    int64_t begin, end;  // elements
    int from;            // buffer read: kSend, kAdd, kCopy
    int into;            // buffer written: kReceive, kAdd, kCopy
    int right;           // kAdd: into = from + right (from is left)
};
// Buffers: 0 … R-1 are the rank's roots, the total ends in buffer 0; max(R, 1) and up are scratch of the size that
// `scratch` says.

/// The elements of the bucket that a scratch buffer has room for.
struct ScratchExtent {
    int64_t begin;
    int64_t end;
    int64_t padded() const { return (end - begin + 15) / 16 * 16; }  // floats, in whole cache lines
};

struct ReducePlan {
    ReduceMethod method = ReduceMethod::kAlone;
    int rank = 0;
    int world = 1;
    int roots = 1;    // partial sums that this rank holds (0 for an idle rank or only empty shards)
    int buffers = 1;  // buffers in all: max(roots, 1) + scratch.size()
    std::vector<ScratchExtent> scratch;
    std::vector<ReduceStep> steps;
    int phases = 0;
    int64_t bytes_sent = 0;  // of gradient elements (the lead is not counted)
    int messages = 0;        // sent
};

/// The plan of `rank` for a bucket of `elements` floats of which the first `lead` are no gradients (loss and flags that
/// ride along, also from ranks without samples: always in the same segment as the first gradient element, and not
/// counted). `sizes`: samples of each of the V shards in this step (which nodes are empty; at least one is not).
/// `small_bytes`: reduce.small_kib in bytes, of gradients.
ReducePlan make_reduce_plan(int shards, int rank, int world, std::span<const int64_t> sizes, int64_t elements,
                            int64_t lead, int64_t small_bytes);

/// Buckets that a reducer has under way at once, each with scratch of its own.
inline constexpr int kReduceLanes = 4;
/// Floats of scratch memory that a plan needs: its scratch buffers.
int64_t scratch_floats(const ReducePlan& plan);

/// A bucket: gradient elements [begin, end) of the flat gradient.
struct Bucket {
    int64_t begin;
    int64_t end;
    bool operator==(const Bucket&) const = default;
};

/// Cuts [0, elements) into pieces of at most bucket_bytes, in the order in which backward finishes them (from the end).
/// Bucket sizes are whole multiples of 16 elements, except the one that ends at `elements`. No elements: one empty
/// bucket, which carries the lead.
std::vector<Bucket> make_buckets(int64_t elements, int64_t bucket_bytes);

/// What a ring all-reduce would send per rank: ceil(2 (W-1) S / W) for S gradient bytes.
int64_t ring_bytes(int64_t gradient_bytes, int world);

}  // namespace lockstep

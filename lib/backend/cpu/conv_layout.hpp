// Where a convolution's numbers lie while the kernels work on them: W packed into panels, the gradient of a shard (a
// leaf), and the bordered copy of an image.
#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "backend/cpu/gemm_kernel.hpp"

namespace lockstep {

/// W, [out][in/groups][kh][kw], becomes for every group panels of [k][width], or for a depthwise convolution
/// [k][channels]. A leaf is, for every group, [(kh, kw, c_in)][c_out], c_out padded to whole vectors (depthwise: [(kh,
/// kw)][channels]), then the bias, if there is one.
class ConvLayout {
  public:
    ConvLayout(const ConvShape& shape, bool depthwise, int lanes);

    /// `backward`: for the data gradient, where k is (KH-1-kh, KW-1-kw, c_out), columns are input channels.
    std::size_t packed_bytes(const GemmKernels& kernels, bool backward) const;
    void pack(const GemmKernels& kernels, const float* w, bool backward, int part, int parts, float* packed) const;

    int64_t leaf_elements() const { return bias_offset_ + (shape_.bias ? shape_.out_channels : 0); }
    int64_t leaf_stride() const { return stride_; }
    int64_t bias_offset() const { return bias_offset_; }
    /// Part `part` of W's gradient in W's order; part 0 also the bias, if there is one (db may be null).
    void store_gradient(const float* leaf, int part, int parts, float* dw, float* db) const;

  private:
    /// A panel of the forward pass: the next `count` columns, W's rows from `w` on.
    void pack_columns(const float* w, int64_t count, int64_t width, float* panel) const;
    int64_t columns(bool backward) const { return backward ? group_in_ : group_out_; }
    int64_t depth(bool backward) const { return taps_ * (backward ? group_out_ : group_in_); }

    ConvShape shape_;
    bool depthwise_;
    int64_t taps_, group_in_, group_out_;
    int64_t stride_, bias_offset_;
};

/// to: `samples` images of bordered_in(shape), zeros around.
void copy_with_border(const ConvShape& shape, const float* images, int64_t samples, float* to);

}  // namespace lockstep

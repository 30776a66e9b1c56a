// What a device can do. Every operation is planned once for its shapes (an object that owns its plan) and then run
// without allocating. Layers are written once above this; the sums behind every operation are those of arithmetic 1
// (backend/cpu/reference.cpp defines them). Activations are NHWC: [rows][height][width][channels], rows are samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/feature_operations.hpp"
#include "backend/loss_operations.hpp"
#include "backend/norm_operations.hpp"
#include "backend/stream.hpp"
#include "backend/update_params.hpp"
#include "core/canonical_tree.hpp"
#include "core/function_ref.hpp"
#include "core/shape.hpp"

namespace lockstep {

/// Device memory, 64-byte aligned (huge pages where large), zeroed, touched once.
class Buffer {
  public:
    virtual ~Buffer() = default;
    virtual std::byte* data() = 0;
    virtual std::size_t bytes() const = 0;
    float* floats() { return reinterpret_cast<float*>(data()); }
};

/// y = x W^T + bias (or null: none, and db null) on `rows` local samples. W [out][in], x [rows][in], y [rows][out].
class Dense {
  public:
    virtual ~Dense() = default;
    virtual void forward(Stream&, const float* x, const float* w, const float* bias, float* y) = 0;
    virtual void backward_data(Stream&, const float* dy, const float* w, float* dx) = 0;
    /// Weight and bias gradients of all local shards, added by the fold program: root i is written to dw[i], db[i].
    virtual void backward_weights(Stream&, const float* x, const float* dy, std::span<float* const> dw,
                                  std::span<float* const> db) = 0;
};

struct ConvShape {
    SampleShape in;
    int out_channels = 1;
    int kernel_h = 1, kernel_w = 1;
    int stride_h = 1, stride_w = 1;
    int dilation_h = 1, dilation_w = 1;
    int pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
    int groups = 1;
    bool bias = true;
    int out_h() const { return (in.height + pad_top + pad_bottom - dilation_h * (kernel_h - 1) - 1) / stride_h + 1; }
    int out_w() const { return (in.width + pad_left + pad_right - dilation_w * (kernel_w - 1) - 1) / stride_w + 1; }
    SampleShape out() const { return {out_h(), out_w(), out_channels}; }
    int64_t weights() const { return int64_t{out_channels} * (in.channels / groups) * kernel_h * kernel_w; }
    bool operator==(const ConvShape&) const = default;
};

/// Convolution of any planned number of rows. W [out][in/groups][kh][kw] (PyTorch's), packed by prepare(). Of a shape
/// without a bias, `bias` and db are null, and leaves hold weights only.
/// Runs of different rows may be under way on different streams at once.
class Conv {
  public:
    virtual ~Conv() = default;
    /// Plans for `rows` samples at a time; rows already planned cost nothing.
    virtual void plan_rows(int rows) = 0;
    /// Packs W for this step's forward and (if asked for at planning) backward_data. Call after every change of W.
    virtual void prepare(Stream&, const float* w) = 0;
    virtual void forward(Stream&, int rows, const float* x, const float* bias, float* y) = 0;
    virtual void backward_data(Stream&, int rows, const float* dy, float* dx) = 0;
    /// Gradients of one shard of `rows` samples, in the device's own order: leaf_elements() floats, weights then bias;
    /// leaves are added with Backend::add and turned by store_gradient into W's order.
    virtual int64_t leaf_elements() const = 0;
    virtual void backward_weights(Stream&, int rows, const float* x, const float* dy, float* leaf) = 0;
    virtual void store_gradient(Stream&, const float* leaf, float* dw, float* db) = 0;
};

enum class PoolKind { kMax, kAverage };
struct PoolShape {
    PoolKind kind = PoolKind::kMax;
    SampleShape in;
    int kernel_h = 2, kernel_w = 2;
    int stride_h = 2, stride_w = 2;
    int pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;  // padded taps are no taps
    int out_h() const { return (in.height + pad_top + pad_bottom - kernel_h) / stride_h + 1; }
    int out_w() const { return (in.width + pad_left + pad_right - kernel_w) / stride_w + 1; }
    SampleShape out() const { return {out_h(), out_w(), in.channels}; }
    bool operator==(const PoolShape&) const = default;
};

/// Pooling of any number of rows. `taps` (max only): [rows][out elements] bytes, the tap that won, numbered
/// kh*kernel_w+kw.
class Pool {
  public:
    virtual ~Pool() = default;
    virtual void forward(Stream&, int rows, const float* x, float* y, uint8_t* taps) = 0;
    /// `masked_by` (or null): the pooled output of a relu; where it is 0, dy counts as +0 (relu's backward at pooled
    /// size).
    virtual void backward(Stream&, int rows, const float* dy, const uint8_t* taps, const float* masked_by,
                          float* dx) = 0;
};

/// Dropout on rows keyed by (seed, layer, epoch, position of the row, element): kept values are multiplied by 1/(1-p).
struct DropoutKey {
    uint64_t seed = 1;
    uint64_t layer = 0;
    uint32_t epoch = 0;
    float probability = 0;  // of dropping; element kept if bits >= floor(p * 2^32)
};

class Backend : public NormOperations, public LossOperations, public FeatureOperations {
  public:
    ~Backend() override = default;

    virtual std::string name() const = 0;  // "cpu avx512, 2 threads"
    /// What the bits of a run depend on beside its config and data: "arithmetic 1", or a vendor's device and libraries.
    virtual std::string fingerprint() const = 0;
    /// What it has chosen so far that explains its bits and speed (a vendor's algorithms), a line each; for the files
    /// of a run. Nothing reads them again.
    virtual std::vector<std::string> details() const { return {}; }

    virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
    /// Border on which arrays that share a buffer had best begin, in bytes.
    virtual std::size_t alignment() const { return 64; }
    /// Host memory for copies to and from the device: pinned where that matters, zeroed.
    virtual std::unique_ptr<Buffer> allocate_host(std::size_t bytes) = 0;
    /// Whether device memory is the host's own, to be read and written there: then nothing needs to be copied.
    virtual bool host_sees_device() const = 0;
    // Host memory <-> device memory. From and to memory of allocate_host a copy is queued on the stream as any
    // operation is, and that memory stays as it is until the copy is done (wait); with any other host memory it is done
    // on return.
    virtual void upload(Stream&, const void* host, void* device, std::size_t bytes) = 0;
    virtual void download(Stream&, const void* device, void* host, std::size_t bytes) = 0;
    /// The host waits for what is queued on the stream; on every stream.
    virtual void wait(Stream&) = 0;
    virtual void synchronize() = 0;

    /// The stream that uses the whole device.
    virtual Stream& main() = 0;
    /// The stream of what is exchanged with other ranks and of its additions; on the CPU the main one.
    virtual Stream& communication() = 0;
    /// What is queued on `after` from now on begins when all that is queued on `before` by now has ended.
    virtual void order(Stream& before, Stream& after) = 0;
    /// Bytes of a layer's input and output that stay in a cache until the next layer: the prefix goes forward in pieces
    /// of that size. As large as can be where short pieces would leave the device idle.
    virtual int64_t piece_bytes() const = 0;
    /// Streams that for_each_range may use at once; Stream::index() is below it.
    virtual int streams() const = 0;
    /// How [0, count) independent items (shards) are dealt to streams: contiguous ranges. One range: the main stream
    /// works on all of them, each with the whole device; more: one stream of a single thread each. At most streams()
    /// ranges.
    virtual std::vector<ShardRange> split_items(int count) const = 0;
    /// Calls body(stream, i) for every range i < ranges.size() of split_items, at once where there are several, and
    /// waits.
    virtual void for_each_range(std::span<const ShardRange> ranges, FunctionRef<void(Stream&, int)> body) = 0;

    // Planned operations.
    virtual std::unique_ptr<Dense> plan_dense(int in, int out, const FoldProgram& fold, bool relu) = 0;
    /// `backward_data`: whether dx is ever asked for (never of the first layer).
    virtual std::unique_ptr<Conv> plan_conv(const ConvShape& shape, bool relu, bool backward_data) = 0;
    virtual std::unique_ptr<Pool> plan_pool(const PoolShape& shape) = 0;
    virtual void plan_fold_rows(const FoldProgram& fold) = 0;

    // Operations without a plan.
    virtual void relu(Stream&, int64_t n, const float* x, float* y) = 0;
    virtual void relu_backward(Stream&, int64_t n, const float* y, float* dy) = 0;  // dy = y > 0 ? dy : +0, in place
    virtual void add(Stream&, int64_t n, const float* left, const float* right, float* dst) = 0;
    virtual void scale(Stream&, int64_t n, float factor, float* x) = 0;  // x = factor * x, in place
    /// to[r][j] = from[r][columns[j]] for `rows` rows of `width` elements; `columns` lies on the device.
    virtual void gather_columns(Stream&, int64_t rows, int width, const int32_t* columns, const float* from,
                                float* to) = 0;
    /// positions: [rows], on the device. y may be x. Backward is the same call on dy.
    virtual void dropout(Stream&, const DropoutKey& key, int rows, int64_t elements, const int64_t* positions,
                         const float* x, float* y) = 0;
    // Labels, losses and probabilities lie on the device.
    /// Per row: loss[r] = log(sum e) - (z_label - max), dlogits = e / sum, minus 1 at the label. dlogits may be null.
    virtual void softmax_cross_entropy(Stream&, int rows, int classes, const float* logits, const int32_t* labels,
                                       float* loss, float* dlogits) = 0;
    virtual void softmax(Stream&, int rows, int classes, const float* logits, float* probabilities) = 0;
    /// Plain sums of each shard's rows (x [rows][columns]) folded by the program: root i to out[i] ([columns]).
    virtual void fold_rows(Stream&, const FoldProgram& fold, int columns, const float* x,
                           std::span<float* const> out) = 0;

    // The update.
    virtual bool all_finite(Stream&, int64_t n, const float* x) = 0;
    /// Whether every |x| is below `limit`, where the device can say so at once; else false.
    virtual bool surely_below(Stream&, int64_t /*n*/, const float* /*x*/, float /*limit*/) { return false; }
    /// sum of squares of g = fma(l2, w, G / divisor) over one tensor of n elements, in the order of the definition:
    /// blocks of 4096, 16 fp64 chains each.
    virtual double square_sum(Stream&, int64_t n, const float* gradient, const float* w, float divisor, float l2) = 0;
    /// Slots and formulas: backend/cpu/reference.hpp. Those that the kind does not have (update_slots), and a direction
    /// but for lamb, may be null.
    virtual void update(Stream&, const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0,
                        float* slot1, float* direction) = 0;
};

}  // namespace lockstep

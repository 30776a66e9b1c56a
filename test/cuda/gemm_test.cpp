// Matrix products of dense layers on a GPU: every tile, split and alignment gives the bytes of the plain loops that
// define the sums.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "backend/cpu/reference_gemm.hpp"
#include "core/canonical_tree.hpp"
#include "cuda/access.h"
#include "cuda/backend/dense_plan.hpp"
#include "cuda/kernels/fold_rows.h"
#include "cuda/kernels/gemm.h"

using namespace lockstep;

namespace {

using Numbers = std::vector<float>;

class OneStream {
  public:
    OneStream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~OneStream() { cudaStreamDestroy(stream_); }
    OneStream(const OneStream&) = delete;
    OneStream& operator=(const OneStream&) = delete;
    cudaStream_t get() const { return stream_; }
    void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
        void* pinned = nullptr;
        CUDA_CHECK(cudaMallocHost(&pinned, bytes));
        const std::unique_ptr<void, decltype(&cudaFreeHost)> owner(pinned, cudaFreeHost);
        const bool up = kind == cudaMemcpyHostToDevice;
        if (up) std::memcpy(pinned, from, bytes);
        CUDA_CHECK(cudaMemcpyAsync(up ? to : pinned, up ? pinned : from, bytes, kind, stream_));
        CUDA_CHECK(cudaStreamSynchronize(stream_));
        if (!up) std::memcpy(to, pinned, bytes);
    }

  private:
    cudaStream_t stream_ = nullptr;
};

// `shift` elements beside a border of 256 bytes.
template <class T>
class Device {
  public:
    Device(const OneStream& stream, const std::vector<T>& host, int shift = 0)
        : stream_(stream), n_(host.size()), shift_(shift) {
        void* memory = nullptr;
        CUDA_CHECK(cudaMalloc(&memory, (n_ + static_cast<std::size_t>(shift)) * sizeof(T) + 1));
        memory_.reset(static_cast<T*>(memory));
        if (n_ > 0) stream.copy(data(), host.data(), n_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    T* data() const { return memory_.get() + shift_; }
    std::vector<T> fetch() const {
        std::vector<T> host(n_);
        if (n_ > 0) stream_.copy(host.data(), data(), n_ * sizeof(T), cudaMemcpyDeviceToHost);
        return host;
    }

  private:
    struct Free {
        void operator()(T* memory) const { cudaFree(memory); }
    };
    const OneStream& stream_;
    std::size_t n_;
    int shift_;
    std::unique_ptr<T, Free> memory_;
};

bool same_bytes(const Numbers& a, const Numbers& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Numbers random_numbers(std::mt19937& engine, std::size_t n) {
    std::normal_distribution<float> normal;
    Numbers made(n);
    for (float& each : made) each = normal(engine);
    for (std::size_t i = 0; i < n; i += 5) made[i] = 0;
    for (std::size_t i = 1; i < n; i += 3) made[i] *= 1e-30F;  // products of two of them are +0 or -0
    return made;
}

std::string text(GemmWay way) {
    const GemmTileShape shape = shape_of(way.tile);
    return fmt::format("{} x {}{}", shape.rows, shape.columns, way.split ? ", split" : "");
}

struct Layer {
    int rows, in, out;
    int shift = 0;  // of every array, in elements: 0 allows loads of 16 bytes where rows do
};

struct Products {
    Numbers y, dx;
};

Products reference_products(const Layer& l, const Numbers& x, const Numbers& w, const Numbers& bias, const Numbers& dy,
                            int chain = kChainTerms) {
    Products p{Numbers(dy.size()), Numbers(x.size())};
    reference_dense_forward(l.rows, l.in, l.out, x.data(), w.data(), bias.data(), true, p.y.data(), chain);
    reference_dense_backward_data(l.rows, l.in, l.out, dy.data(), w.data(), p.dx.data(), chain);
    return p;
}

std::size_t product(int a, int b, int c = 1) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

// The gradients of all roots, one after another.
Numbers device_gradient(const OneStream& stream, GemmWay way, const FoldProgram& program, int in, int out,
                        const Numbers& x, const Numbers& dy, int shift) {
    const DenseFold fold = dense_fold(program);
    const Device<FoldLeaf> leaves(stream, fold.leaves);
    const Device<float> on_x(stream, x, shift), on_dy(stream, dy, shift);
    Numbers all;
    for (const DenseFold::Root& root : fold.roots) {
        const Device<float> dw(stream, Numbers(product(in, out), -3.0F), shift), db(stream, Numbers(product(out, 1)));
        const Device<float> partial(stream, Numbers(way.split ? product(in, out, root.chains) : 0));
        gemm_allow_shared(way, root.kept);
        gemm_weight_gradient(way, in, out, {leaves.data() + root.first_chain, root.chains, root.kept}, on_x.data(),
                             on_dy.data(), program.rows, dw.data(), partial.data(), stream.get());
        launch_fold_rows(leaves.data() + root.first_shard, root.shards, program.rows, out, on_dy.data(), db.data(),
                         stream.get());
        for (const Numbers& part : {dw.fetch(), db.fetch()}) all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

Numbers reference_gradient(const FoldProgram& program, int in, int out, const Numbers& x, const Numbers& dy,
                           int chain = kChainTerms) {
    std::vector<Numbers> dw(program.roots.size(), Numbers(product(in, out))),
        db(program.roots.size(), Numbers(product(out, 1)));
    std::vector<float*> dw_pointers, db_pointers;
    for (Numbers& each : dw) dw_pointers.push_back(each.data());
    for (Numbers& each : db) db_pointers.push_back(each.data());
    reference_dense_weight_gradient(program, in, out, {0, out}, x.data(), dy.data(), dw_pointers, chain);
    reference_dense_bias_gradient(program, out, {0, out}, dy.data(), db_pointers);
    Numbers all;
    for (std::size_t i = 0; i < dw.size(); ++i) {
        all.insert(all.end(), dw[i].begin(), dw[i].end());
        all.insert(all.end(), db[i].begin(), db[i].end());
    }
    return all;
}

}  // namespace

TEST_CASE("every tile of forward and data gradient gives the reference's bytes, split or not") {
    std::mt19937 engine(Catch::rngSeed());
    const OneStream stream;
    const std::vector<Layer> layers = {
        {1, 1, 1},        // of one product
        {5, 33, 21, 1},   // odd everywhere
        {17, 16, 132},    // a row beyond 16, columns beyond 128
        {36, 520, 12},    // quads everywhere, two chains forward
        {3, 1025, 7, 1},  // three chains, the last of one term
        {130, 4, 36},     // rows beyond 128
        {6, 5, 1100},     // three chains of the data gradient
        {2, 512, 512},    // whole chains
    };
    for (const Layer& l : layers) {
        const Numbers x = random_numbers(engine, product(l.rows, l.in)),
                      w = random_numbers(engine, product(l.in, l.out)),
                      bias = random_numbers(engine, product(l.out, 1)),
                      dy = random_numbers(engine, product(l.rows, l.out));
        const Products expected = reference_products(l, x, w, bias, dy);
        const Device<float> on_x(stream, x, l.shift), on_w(stream, w, l.shift), on_bias(stream, bias, l.shift),
            on_dy(stream, dy, l.shift);
        const auto chains = static_cast<std::size_t>((std::max(l.in, l.out) + kGemmChain - 1) / kGemmChain);
        const Device<float> partial(stream, Numbers(chains * std::max(x.size(), dy.size())));
        for (const GemmTile tile : kGemmTiles) {
            for (const bool split : {false, true}) {
                const GemmWay way{tile, split};
                INFO(text(way) << ": " << l.rows << " rows, " << l.in << " -> " << l.out << ", shift " << l.shift);
                const Device<float> y(stream, Numbers(dy.size(), -3.0F), l.shift),
                    dx(stream, Numbers(x.size(), -3.0F), l.shift);
                gemm_forward(way, l.rows, l.in, l.out, on_x.data(), on_w.data(), on_bias.data(), true, y.data(),
                             partial.data(), stream.get());
                gemm_backward_data(way, l.rows, l.in, l.out, on_dy.data(), on_w.data(), dx.data(), partial.data(),
                                   stream.get());
                CHECK(same_bytes(y.fetch(), expected.y));
                CHECK(same_bytes(dx.fetch(), expected.dx));
            }
        }
    }
}

TEST_CASE("every tile of the weight gradient adds shards up as the tree does, split or not") {
    std::mt19937 engine(Catch::rngSeed());
    const OneStream stream;
    struct Case {
        int in, out;
        std::vector<int64_t> sizes;
        ShardRange range;
        int shift = 0;
    };
    const std::vector<Case> cases = {
        {1, 1, {1}, {0, 1}},                                  // one product
        {33, 21, {3, 0, 1, 17, 8, 2}, {0, 6}, 1},             // odd everywhere, an empty shard
        {132, 20, {16, 16, 16, 16, 16, 16, 16, 16}, {0, 8}},  // whole slices in quads
        {12, 36, {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, {3, 9}},  // several roots
        {9, 10, std::vector<int64_t>(40, 1), {0, 40}},        // a stack deeper than registers
        {8, 4, {513, 1100, 0, 7}, {0, 4}},                    // shards of several chains
        {140, 17, {23}, {0, 1}},                              // nothing waits
        {30, 20, {1}, {0, 1}},  // sums of one term, some of them -0: no zero may be added to them
    };
    for (const Case& c : cases) {
        const FoldProgram program = fold_program(static_cast<int>(c.sizes.size()), c.range, c.sizes);
        const Numbers x = random_numbers(engine, product(program.rows, c.in)),
                      dy = random_numbers(engine, product(program.rows, c.out));
        const Numbers expected = reference_gradient(program, c.in, c.out, x, dy);
        for (const GemmTile tile : kGemmTiles) {
            for (const bool split : {false, true}) {
                const GemmWay way{tile, split};
                INFO(text(way) << ": " << c.in << " -> " << c.out << ", " << program.rows << " rows");
                int kept = 0;
                for (const DenseFold::Root& root : dense_fold(program).roots) kept = std::max(kept, root.kept);
                if (gemm_gradient_shared(way, kept) > std::size_t{160} << 10) continue;
                CHECK(same_bytes(device_gradient(stream, way, program, c.in, c.out, x, dy, c.shift), expected));
            }
        }
    }
}

TEST_CASE("a gradient with a deep stack still runs after one with a shallower stack has been planned") {
    std::mt19937 engine(Catch::rngSeed());
    const OneStream stream;
    const GemmWay way{GemmTile::k64x64, false};
    const std::vector<int64_t> sizes(16, 1);
    const FoldProgram program = fold_program(16, {0, 16}, sizes);
    const DenseFold fold = dense_fold(program);
    const DenseFold::Root& root = fold.roots.at(0);
    const Numbers x = random_numbers(engine, product(16, 8)), dy = random_numbers(engine, product(16, 4));
    const Device<FoldLeaf> leaves(stream, fold.leaves);
    const Device<float> on_x(stream, x), on_dy(stream, dy), dw(stream, Numbers(product(8, 4)));
    REQUIRE(root.kept == 4);
    gemm_allow_shared(way, 4);
    gemm_allow_shared(way, 3);  // of a short last batch: more than every kernel may use, too
    gemm_weight_gradient(way, 8, 4, {leaves.data(), root.chains, root.kept}, on_x.data(), on_dy.data(), 16, dw.data(),
                         nullptr, stream.get());
    Numbers expected = reference_gradient(program, 8, 4, x, dy);
    expected.resize(product(8, 4));
    CHECK(same_bytes(dw.fetch(), expected));
}

TEST_CASE("chains of another length give other bits, so that these tests can fail") {
    std::mt19937 engine(Catch::rngSeed());
    const OneStream stream;
    const Layer l{40, 300, 300};
    const Numbers x = random_numbers(engine, product(300, 300)), w = random_numbers(engine, product(300, 300)),
                  bias = random_numbers(engine, 300), dy = random_numbers(engine, product(300, 300));
    const Products other = reference_products(l, x, w, bias, dy, 256);
    const Device<float> on_x(stream, x), on_w(stream, w), on_bias(stream, bias), on_dy(stream, dy);
    const Device<float> y(stream, Numbers(product(300, 300))), dx(stream, Numbers(product(300, 300)));
    const GemmWay way{GemmTile::k64x64, false};
    gemm_forward(way, l.rows, l.in, l.out, on_x.data(), on_w.data(), on_bias.data(), true, y.data(), nullptr,
                 stream.get());
    gemm_backward_data(way, l.rows, l.in, l.out, on_dy.data(), on_w.data(), dx.data(), nullptr, stream.get());
    CHECK_FALSE(same_bytes(y.fetch(), other.y));
    CHECK_FALSE(same_bytes(dx.fetch(), other.dx));
    const std::vector<int64_t> sizes = {300};
    const FoldProgram program = fold_program(1, {0, 1}, sizes);
    const Numbers narrow_x(x.begin(), x.begin() + 300 * 8), narrow_dy(dy.begin(), dy.begin() + 300 * 8);
    CHECK_FALSE(same_bytes(device_gradient(stream, way, program, 8, 8, narrow_x, narrow_dy, 0),
                           reference_gradient(program, 8, 8, narrow_x, narrow_dy, 256)));
}

// Dense layers by cuBLAS: near the CPU's sums in every precision, and the same bits wherever a shard is computed.
#include <fmt/format.h>

#include <numeric>

#include "backend/cpu/reference_gemm.hpp"
#include "core/canonical_tree.hpp"
#include "test/cuda/vendor_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Contains;

namespace {

struct Layer {
    int in = 70, out = 33;
    std::vector<int64_t> sizes = {5, 4, 0, 5, 4, 5, 4, 4};  // samples of each shard
    bool biased = true;
    int rows() const { return static_cast<int>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})); }
    int shards() const { return static_cast<int>(sizes.size()); }
    Numbers x() const { return random_numbers(int64_t{rows()} * in, 1); }
    Numbers dy() const { return random_numbers(int64_t{rows()} * out, 2); }
    Numbers w() const { return random_numbers(int64_t{in} * out, 3, 0.1F); }
    Numbers bias() const { return biased ? random_numbers(out, 4) : Numbers(static_cast<std::size_t>(out)); }
};

struct Result {
    Numbers y, dx, dw, db;
};

bool same_bytes(const Result& a, const Result& b) {
    return test::same_bytes(a.y, b.y) && test::same_bytes(a.dx, b.dx) && test::same_bytes(a.dw, b.dw) &&
           test::same_bytes(a.db, b.db);
}

Numbers part_of(const Numbers& all, int64_t begin, int64_t end) {
    return Numbers(all.begin() + begin, all.begin() + end);
}

/// What the ranks of a world compute, one after another, with the roots joined as the tree says.
Result compute(const Layer& layer, int world, CudaContext& context, int stream = -1, int shift = 0) {
    Result all;
    std::vector<Numbers> dw, db;
    std::vector<ShardRange> nodes;
    int row = 0;
    for (int rank = 0; rank < world; ++rank) {
        const FoldProgram fold = fold_program(layer.shards(), shards_of_rank(layer.shards(), rank, world), layer.sizes);
        const auto dense = make_vendor_dense(context, layer.in, layer.out, fold, true);
        const OnGpu x(context, part_of(layer.x(), int64_t{row} * layer.in, int64_t{row + fold.rows} * layer.in), shift);
        const OnGpu dy(context, part_of(layer.dy(), int64_t{row} * layer.out, int64_t{row + fold.rows} * layer.out),
                       shift);
        const OnGpu w(context, layer.w()), bias(context, layer.bias());
        const OnGpu y(context, int64_t{fold.rows} * layer.out, shift),
            dx(context, int64_t{fold.rows} * layer.in, shift);
        std::vector<OnGpu> weights, biases;
        std::vector<float*> weight_roots, bias_roots;
        for (std::size_t i = 0; i < fold.roots.size(); ++i) {
            weights.emplace_back(context, int64_t{layer.in} * layer.out, shift);
            biases.emplace_back(context, layer.out, shift);
            weight_roots.push_back(weights.back().data());
            if (layer.biased) bias_roots.push_back(biases.back().data());
        }
        Stream& on = stream < 0 ? context.main() : context.shard(stream);
        dense->forward(on, x.data(), w.data(), layer.biased ? bias.data() : nullptr, y.data());
        dense->backward_data(on, dy.data(), w.data(), dx.data());
        dense->backward_weights(on, x.data(), dy.data(), weight_roots, bias_roots);
        const Numbers own_y = y.fetch(), own_dx = dx.fetch();
        all.y.insert(all.y.end(), own_y.begin(), own_y.end());
        all.dx.insert(all.dx.end(), own_dx.begin(), own_dx.end());
        for (std::size_t i = 0; i < fold.roots.size(); ++i) {
            nodes.push_back(fold.roots[i]);
            dw.push_back(weights[i].fetch());
            db.push_back(biases[i].fetch());
        }
        row += fold.rows;
    }
    for (const JoinStep& step : join_program(layer.shards(), nodes)) {
        const auto into = static_cast<std::size_t>(step.into), from = static_cast<std::size_t>(step.from);
        for (std::size_t i = 0; i < dw[into].size(); ++i) dw[into][i] = dw[into][i] + dw[from][i];
        for (std::size_t i = 0; i < db[into].size(); ++i) db[into][i] = db[into][i] + db[from][i];
    }
    all.dw = dw.front();
    all.db = db.front();
    return all;
}

Result reference(const Layer& layer) {
    const FoldProgram fold = fold_program(layer.shards(), {0, layer.shards()}, layer.sizes);
    Result r;
    r.y.resize(static_cast<std::size_t>(layer.rows()) * layer.out);
    r.dx.resize(static_cast<std::size_t>(layer.rows()) * layer.in);
    r.dw.resize(static_cast<std::size_t>(layer.in) * layer.out);
    r.db.resize(static_cast<std::size_t>(layer.out));
    reference_dense_forward(layer.rows(), layer.in, layer.out, layer.x().data(), layer.w().data(), layer.bias().data(),
                            true, r.y.data());
    reference_dense_backward_data(layer.rows(), layer.in, layer.out, layer.dy().data(), layer.w().data(), r.dx.data());
    float* const dw[] = {r.dw.data()};
    float* const db[] = {r.db.data()};
    reference_dense_weight_gradient(fold, layer.in, layer.out, {0, layer.out}, layer.x().data(), layer.dy().data(), dw);
    reference_dense_bias_gradient(fold, layer.out, {0, layer.out}, layer.dy().data(), db);
    return r;
}

}  // namespace

TEST_CASE("dense layers of every precision are near the CPU's") {
    for (const Layer& layer : {Layer{}, Layer{784, 128, {16, 16}}, Layer{1, 1, {1}}, Layer{300, 10, {64}}}) {
        const Result expected = reference(layer);
        for (const PrecisionCase& each : precisions()) {
            INFO(layer.in << " -> " << layer.out << ", precision " << static_cast<int>(each.precision));
            CudaContext context(vendor_options(each.precision));
            const Result got = compute(layer, 1, context);
            CHECK(distance(got.y, expected.y) < each.bound);
            CHECK(distance(got.dx, expected.dx) < each.bound);
            CHECK(distance(got.dw, expected.dw) < each.bound);
            CHECK(distance(got.db, expected.db) < 1e-5);
        }
    }
}

TEST_CASE("a dense layer without a bias adds none and writes no gradient of one") {
    Layer plain;
    plain.biased = false;
    const Result expected = reference(plain);
    for (const PrecisionCase& each : precisions()) {
        CudaContext context(vendor_options(each.precision));
        const Result got = compute(plain, 1, context), with_bias = compute(Layer{}, 1, context);
        CHECK(distance(got.y, expected.y) < each.bound);
        CHECK(test::same_bytes(got.dw, with_bias.dw));
        CHECK(got.db == Numbers(33, -3.0F));  // as it was made
        CHECK_FALSE(test::same_bytes(got.y, with_bias.y));
    }
}

TEST_CASE("a dense layer of reduced precision has other bits than fp32") {
    CudaContext exact(vendor_options(CudaPrecision::kFp32));
    const Result fp32 = compute(Layer{}, 1, exact);
    for (const auto precision : {CudaPrecision::kTf32, CudaPrecision::kBf16, CudaPrecision::kFp16}) {
        CudaContext context(vendor_options(precision));
        const Result other = compute(Layer{}, 1, context);
        CHECK_FALSE(test::same_bytes(other.y, fp32.y));
        CHECK_FALSE(test::same_bytes(other.dx, fp32.dx));
        CHECK_FALSE(test::same_bytes(other.dw, fp32.dw));
    }
}

TEST_CASE("a dense layer has the same bits at any number of ranks") {
    for (const PrecisionCase& each : precisions()) {
        CudaContext context(vendor_options(each.precision));
        const Result one = compute(Layer{}, 1, context);
        for (const int world : {2, 3, 4, 8}) {
            INFO("precision " << static_cast<int>(each.precision) << ", " << world << " ranks");
            REQUIRE(same_bytes(compute(Layer{}, world, context), one));
        }
    }
}

TEST_CASE("a dense layer has the same bits on any stream and wherever its tensors lie") {
    CudaContext alone(vendor_options(CudaPrecision::kFp32));
    const Result one = compute(Layer{}, 1, alone);
    REQUIRE(same_bytes(compute(Layer{}, 1, alone, -1, 1), one));
    for (const int streams : {2, 4}) {
        CudaContext context(vendor_options(CudaPrecision::kFp32, streams));
        for (int stream = -1; stream < streams; ++stream) {
            INFO("stream " << stream << " of " << streams);
            REQUIRE(same_bytes(compute(Layer{}, 1, context, stream), one));
        }
    }
}

#ifdef LOCKSTEP_CUDA_EMULATION
// A real library may or may not show it; the emulated one always does.
TEST_CASE("all rows in one product would be other bits: shards are the unit") {
    Layer whole;
    whole.sizes = {whole.rows()};
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    const Result one = compute(Layer{}, 1, context);
    const Result merged = compute(whole, 1, context);
    CHECK_FALSE(test::same_bytes(one.y, merged.y));
    CHECK_FALSE(test::same_bytes(one.dx, merged.dx));
    CHECK_FALSE(test::same_bytes(one.dw, merged.dw));
}
#endif

TEST_CASE("the fingerprint names the device, the libraries, the precision and what the environment changes") {
    CudaOptions options = vendor_options(CudaPrecision::kBf16);
    options.environment = {"NVIDIA_TF32_OVERRIDE=0"};
    const CudaContext context(options);
    const std::string text = vendor_fingerprint(context);
    CHECK_THAT(text, Contains(fmt::format("sm_{}{}, {} multiprocessors", context.properties().major,
                                          context.properties().minor, context.properties().multiProcessorCount)));
    CHECK_THAT(text, Contains("cuBLAS ") && Contains("cuDNN ") && Contains("bf16 products"));
    CHECK_THAT(text, Contains("NVIDIA_TF32_OVERRIDE=0"));
    options.precision = CudaPrecision::kFp16;
    CHECK(vendor_fingerprint(CudaContext(options)) != text);
}

// Which tiles the matrix products of dense layers take on a GPU.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "core/canonical_tree.hpp"
#include "cuda/backend/dense_plan.hpp"

using namespace lockstep;

namespace {

constexpr GemmDevice kLarge{132, 227 << 10}, kSmall{20, 99 << 10};

DenseFold::Root whole_root(int shards, int64_t size) {
    const std::vector<int64_t> sizes(static_cast<std::size_t>(shards), size);
    return dense_fold(fold_program(shards, {0, shards}, sizes)).roots.at(0);
}

}  // namespace

TEST_CASE("products with many outputs take the largest tile and are not split") {
    CHECK(gemm_way(kLarge, {4096, 4096, 4096}) == GemmWay{GemmTile::k128x128, false});
    CHECK(gemm_way(kLarge, {8192, 1024, 1024}) == GemmWay{GemmTile::k128x128, false});
    CHECK(gradient_way(kLarge, 4096, 4096, whole_root(1, 1024)) == GemmWay{GemmTile::k128x128, false});
}

TEST_CASE("few outputs and long sums are split") {
    CHECK(gemm_way(kLarge, {128, 512, 3136}).split);
    CHECK(gemm_way(kLarge, {1, 1000, 25088}) == GemmWay{GemmTile::k16x128, true});
    CHECK(gradient_way(kLarge, 512, 10, whole_root(8, 1024)).split);
    CHECK_FALSE(gemm_way(kLarge, {128, 10, 512}).split);
}

TEST_CASE("few rows take the tile with few rows where all processors have work") {
    CHECK(gemm_way(kLarge, {8, 30000, 512}).tile == GemmTile::k16x128);
    CHECK(gradient_way(kLarge, 30000, 10, whole_root(1, 128)).tile == GemmTile::k16x128);
    CHECK(gemm_way(kLarge, {12, 300, 70}).tile == GemmTile::k32x32);
}

TEST_CASE("the stack of a gradient fits the device at any number of shards") {
    for (const GemmDevice device : {kLarge, kSmall}) {
        for (int shards = 1; shards <= 1 << 12; shards *= 2) {
            for (const int features : {10, 500, 4096}) {
                const DenseFold::Root root = whole_root(shards, 3);
                const GemmWay way = gradient_way(device, features, features, root);
                INFO(shards << " shards, " << features << " features");
                CHECK(gemm_gradient_shared(way, root.kept) <= device.shared_bytes);
            }
        }
    }
}

TEST_CASE("parts of split sums stay within a fixed memory") {
    for (const int rows : {1, 100, 3000}) {
        for (const int features : {10, 1000, 30000}) {
            const GemmSize size{rows, features, 30000};
            if (gemm_way(kLarge, size).split) CHECK(gemm_partial_floats(size, 59) <= int64_t{8} << 20);
        }
    }
}

TEST_CASE("a shard of several chains adds each to those before, and then goes up the tree") {
    const std::vector<int64_t> sizes = {600, 0, 1025, 4};
    const DenseFold fold = dense_fold(fold_program(4, {0, 4}, sizes));
    REQUIRE(fold.roots.size() == 1);
    const DenseFold::Root root = fold.roots[0];
    CHECK(root.samples == 1629);
    CHECK(root.chains == 6);
    CHECK(root.shards == 3);
    CHECK(root.first_shard == 6);
    const std::vector<FoldLeaf> expected = {{0, 512, 0},     {512, 600, 1},   {600, 1112, 0},
                                            {1112, 1624, 1}, {1624, 1625, 1}, {1625, 1629, 2},
                                            {0, 600, 0},     {600, 1625, 0},  {1625, 1629, 2}};
    REQUIRE(fold.leaves.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO("leaf " << i);
        CHECK(fold.leaves[i].begin == expected[i].begin);
        CHECK(fold.leaves[i].end == expected[i].end);
        CHECK(fold.leaves[i].adds == expected[i].adds);
    }
    // The sum of 600 samples waits while that of 1,025 comes in, whose own first chains wait in turn.
    CHECK(root.kept == 2);
}

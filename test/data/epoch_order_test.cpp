// The order of an epoch: a bijection of any length that seed and epoch decide, as even as chance would be, and golden
// orders that stand.
#include "data/epoch_order.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "core/error.hpp"

namespace lockstep {
namespace {

template <class Map>
bool is_bijection(const Map& map, int64_t n) {
    std::vector<char> seen(static_cast<size_t>(n), 0);
    for (int64_t position = 0; position < n; ++position) {
        const int64_t index = map(position);
        if (index < 0 || index >= n || seen[static_cast<size_t>(index)]++) return false;
    }
    return true;
}

bool is_bijection(const EpochOrder& order, int64_t n) {
    return is_bijection([&](int64_t position) { return order.index(position); }, n);
}

// The two-sided 99.9 % band of chi-square, by Wilson and Hilferty's cube root (good to 0.1 % above 30 degrees of
// freedom).
bool in_band(double chi_square, double freedom) {
    const auto quantile = [&](double z) {
        const double a = 2.0 / (9.0 * freedom);
        return freedom * std::pow(1.0 - a + z * std::sqrt(a), 3.0);
    };
    return chi_square > quantile(-3.2905) && chi_square < quantile(3.2905);
}

// Of a table of counts that are all expected to be equal.
double chi_square_of(const std::vector<int>& counts, double expected) {
    double sum = 0.0;
    for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
    return sum;
}

TEST_CASE("the order is a bijection for every number of samples up to 5,000", "[epoch_order]") {
    for (int64_t n = 1; n <= 5000; ++n) {
        if (!is_bijection(EpochOrder(17, n % 7, n), n)) FAIL("no bijection at N = " << n);
    }
}

TEST_CASE("taking the remainder in place of walking the cycle is no bijection", "[epoch_order]") {
    const EpochOrder larger(17, 0, 1024);
    CHECK_FALSE(is_bijection([&](int64_t position) { return larger.index(position) % 1000; }, 1000));
}

TEST_CASE("a billion samples are visited without a repetition in a sample of positions", "[epoch_order]") {
    constexpr int64_t kSamples = 1'000'000'007;
    constexpr int kTried = 100'000;
    const EpochOrder order(5, 3, kSamples);
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < kTried; ++i) {
        indices.push_back(order.index(i % 2 == 0 ? i : kSamples - 1 - i * 7919));  // neighbours, and positions all over
    }
    std::sort(indices.begin(), indices.end());
    CHECK(indices.front() >= 0);
    CHECK(indices.back() < kSamples);
    CHECK(std::adjacent_find(indices.begin(), indices.end()) == indices.end());
}

TEST_CASE("every index is as likely at every position", "[epoch_order]") {
    for (const int n : {2, 3, 5, 10, 37, 64, 100}) {
        constexpr int kEpochs = 20'000;
        std::vector<int> counts(static_cast<size_t>(n * n), 0);
        for (int epoch = 0; epoch < kEpochs; ++epoch) {
            const EpochOrder order(11, epoch, n);
            for (int position = 0; position < n; ++position)
                ++counts[static_cast<size_t>(position * n + order.index(position))];
        }
        const double freedom = static_cast<double>(n - 1) * (n - 1);
        INFO("N = " << n);
        if (n >= 5) {
            CHECK(in_band(chi_square_of(counts, static_cast<double>(kEpochs) / n), freedom));
        } else {
            CHECK(chi_square_of(counts, static_cast<double>(kEpochs) / n) < 18.5);  // 99.9 % at 4 degrees of freedom
        }
    }
}

TEST_CASE("within one epoch of a billion samples index and position are independent", "[epoch_order]") {
    constexpr int64_t kSamples = 1'000'000'007;
    constexpr int kBins = 32;
    constexpr int kTried = 200'000;
    const EpochOrder order(1, 0, kSamples);
    std::vector<int> counts(kBins * kBins, 0);
    std::vector<int> steps(kBins, 0);  // of the distance between neighbours: a shuffle keeps no runs
    for (int64_t i = 0; i < kTried; ++i) {
        const int64_t position = i * (kSamples / kTried);
        const int64_t index = order.index(position);
        ++counts[static_cast<size_t>(position * kBins / kSamples * kBins + index * kBins / kSamples)];
        const int64_t neighbour = order.index(position + 1);
        ++steps[static_cast<size_t>((neighbour - index + kSamples) % kSamples * kBins / kSamples)];
    }
    CHECK(in_band(chi_square_of(counts, static_cast<double>(kTried) / (kBins * kBins)), kBins * kBins - kBins));
    CHECK(in_band(chi_square_of(steps, static_cast<double>(kTried) / kBins), kBins - 1));
}

TEST_CASE("seeds and epochs give different orders, and the same ones the same order", "[epoch_order]") {
    const auto order = [](uint64_t seed, int64_t epoch) {
        const EpochOrder made(seed, epoch, 1000);
        std::vector<int64_t> out;
        for (int64_t p = 0; p < 1000; ++p) out.push_back(made.index(p));
        return out;
    };
    const auto first = order(1, 0);
    CHECK(first == order(1, 0));
    CHECK(first != order(2, 0));
    CHECK(first != order(uint64_t{1} << 40 | 1, 0));
    CHECK(first != order(1, 1));
    CHECK(order(1, 5) != order(1, 5 + (int64_t{1} << 32)));
}

TEST_CASE("without shuffling the order is the data set's", "[epoch_order]") {
    const EpochOrder order(1, 4, 100, Shuffle::kNone);
    for (int64_t p = 0; p < 100; ++p) CHECK(order.index(p) == p);
}

TEST_CASE("shuffling in blocks is a bijection that stays in one block for a block's length", "[epoch_order]") {
    for (int64_t n = 1; n <= 600; ++n) {
        for (const int64_t block : {1, 2, 3, 7, 16, 64, 599, 600, 1000}) {
            const EpochOrder order(3, n % 5, n, Shuffle::kBlock, block);
            if (!is_bijection(order, n)) FAIL("no bijection at N = " << n << ", block " << block);
            std::vector<char> finished(static_cast<size_t>(n / block + 1), 0);
            int64_t current = -1;
            for (int64_t p = 0; p < n; ++p) {
                const int64_t touched = order.index(p) / block;
                if (touched == current) continue;
                if (finished[static_cast<size_t>(touched)]) FAIL("block " << touched << " is met twice at N = " << n);
                finished[static_cast<size_t>(touched)] = 1;
                current = touched;
            }
        }
    }
}

TEST_CASE("blocks are shuffled, and so are the records of each block in its own way", "[epoch_order]") {
    constexpr int64_t kBlock = 100;
    const EpochOrder order(3, 0, 1000, Shuffle::kBlock, kBlock);
    std::vector<int64_t> blocks;
    std::vector<std::vector<int64_t>> inner(10);
    for (int64_t p = 0; p < 1000; ++p) {
        if (p % kBlock == 0) blocks.push_back(order.index(p) / kBlock);
        inner[static_cast<size_t>(p / kBlock)].push_back(order.index(p) % kBlock);
    }
    CHECK_FALSE(std::is_sorted(blocks.begin(), blocks.end()));
    for (size_t i = 0; i < inner.size(); ++i) {
        CHECK_FALSE(std::is_sorted(inner[i].begin(), inner[i].end()));
        for (size_t j = 0; j < i; ++j) CHECK(inner[i] != inner[j]);
    }
}

TEST_CASE("the golden orders stand: a change of any needs a new arithmetic number", "[epoch_order]") {
    const auto head = [](const EpochOrder& order) {
        std::vector<int64_t> out;
        for (int64_t p = 0; p < 6; ++p) out.push_back(order.index(p));
        return out;
    };
    using Golden = std::vector<int64_t>;
    CHECK(head(EpochOrder(1, 0, 60000)) == Golden{38123, 45659, 8517, 17435, 43046, 44668});
    CHECK(head(EpochOrder(1, 1, 60000)) == Golden{19498, 47658, 58822, 14477, 55529, 39608});
    CHECK(head(EpochOrder(42, 7, 1003)) == Golden{722, 799, 193, 913, 911, 666});
    CHECK(head(EpochOrder(42, 0, 1'000'000'007)) ==
          Golden{375844645, 800610780, 45650535, 918486842, 103252011, 952000920});
    CHECK(head(EpochOrder(42, 0, 10'000, Shuffle::kBlock, 1024)) == Golden{8369, 9194, 8820, 9164, 8519, 8819});
}

TEST_CASE("an empty epoch is refused", "[epoch_order]") {
    CHECK_THROWS_AS(EpochOrder(1, 0, 0), Error);
    CHECK_THROWS_AS(EpochOrder(1, 0, 10, Shuffle::kBlock, 0), Error);
}

}  // namespace
}  // namespace lockstep

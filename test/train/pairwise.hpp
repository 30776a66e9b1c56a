// A small covering array: choices such that every pair of values of any two factors stands together in some row.
#pragma once

#include <cstddef>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace lockstep::test {

/// Rows of value numbers, one per factor; greedy, the same for the same seed. `levels[f]`: how many values factor f
/// has.
inline std::vector<std::vector<std::size_t>> covering_rows(const std::vector<std::size_t>& levels, unsigned seed) {
    using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;
    std::set<Pair> open;
    for (std::size_t f = 0; f < levels.size(); ++f) {
        for (std::size_t g = f + 1; g < levels.size(); ++g) {
            for (std::size_t a = 0; a < levels[f]; ++a) {
                for (std::size_t b = 0; b < levels[g]; ++b) open.insert({f, a, g, b});
            }
        }
    }
    std::mt19937 random(seed);
    const auto covered = [&](const std::vector<std::size_t>& row) {
        std::vector<Pair> pairs;
        for (std::size_t f = 0; f < row.size(); ++f) {
            for (std::size_t g = f + 1; g < row.size(); ++g) {
                if (open.count({f, row[f], g, row[g]}) != 0) pairs.push_back({f, row[f], g, row[g]});
            }
        }
        return pairs;
    };
    std::vector<std::vector<std::size_t>> rows;
    while (!open.empty()) {
        std::vector<std::size_t> best;
        std::size_t best_count = 0;
        const auto [f, a, g, b] = *open.begin();
        for (int attempt = 0; attempt < 60; ++attempt) {
            std::vector<std::size_t> row;
            for (const std::size_t n : levels) row.push_back(random() % n);
            row[f] = a;
            row[g] = b;
            const std::size_t count = covered(row).size();
            if (count > best_count) {
                best = row;
                best_count = count;
            }
        }
        for (const Pair& pair : covered(best)) open.erase(pair);
        rows.push_back(best);
    }
    return rows;
}

}  // namespace lockstep::test

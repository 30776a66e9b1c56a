// What the tests of the operations share: random arrays whose ends are guarded, comparison by bytes, and a backend for
// each instruction set of this machine and 1 to 3 threads. The seed is Catch's (--rng-seed), 1 unless given; every case
// prints it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"

namespace lockstep::test {

class Random {
  public:
    Random() : seed_(Catch::rngSeed() == 0 ? 1 : Catch::rngSeed()), engine_(seed_) {}
    unsigned seed() const { return seed_; }
    int in(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
    float number(float scale) { return std::normal_distribution<float>(0.0F, scale)(engine_); }
    std::mt19937& engine() { return engine_; }

  private:
    unsigned seed_;
    std::mt19937 engine_;
};

/// n values at an odd place in memory, with guards before and after that no operation may touch.
template <class T>
class Guarded {
  public:
    explicit Guarded(int64_t n, T value = T{}) : n_(n), all_(static_cast<std::size_t>(n + 2 * kGuard), guard()) {
        for (int64_t i = 0; i < n; ++i) data()[i] = value;
    }
    Guarded(Random& random, int64_t n, float scale = 1.0F) : Guarded(n) {
        for (int64_t i = 0; i < n; ++i) data()[i] = static_cast<T>(random.number(scale));
    }
    T* data() { return all_.data() + kGuard; }
    const T* data() const { return all_.data() + kGuard; }
    T& operator[](int64_t i) { return data()[i]; }
    const T& operator[](int64_t i) const { return data()[i]; }
    int64_t size() const { return n_; }
    bool intact() const {
        for (int64_t i = 0; i < kGuard; ++i) {
            if (!is_guard(all_[static_cast<std::size_t>(i)]) ||
                !is_guard(all_[static_cast<std::size_t>(kGuard + n_ + i)]))
                return false;
        }
        return true;
    }
    friend bool same_bytes(const Guarded& a, const Guarded& b) {
        return a.n_ == b.n_ && a.intact() && b.intact() &&
               std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.n_) * sizeof(T)) == 0;
    }

  private:
    static constexpr int64_t kGuard = 37;
    static T guard() { return static_cast<T>(77); }
    static bool is_guard(T value) { return value == guard(); }

    int64_t n_;
    std::vector<T> all_;
};
using Floats = Guarded<float>;

struct NamedBackend {
    std::string name;
    std::unique_ptr<Backend> backend;
};

/// "auto" is no instruction set of its own: it is the first of these.
inline std::vector<NamedBackend> every_backend(int most_threads = 3) {
    std::vector<NamedBackend> made;
    for (const Isa isa : available_isas()) {
        for (int threads = 1; threads <= most_threads; ++threads) {
            made.push_back(
                {std::string(isa_name(isa)) + " x " + std::to_string(threads), make_cpu_backend({isa, threads})});
        }
    }
    return made;
}

/// Sizes that meet every tail of every vector length, and some that wake the threads.
inline std::vector<int64_t> sizes_with_tails(Random& random) {
    std::vector<int64_t> sizes;
    for (int n = 1; n <= 40; ++n) sizes.push_back(n);
    for (int i = 0; i < 6; ++i) sizes.push_back(random.in(41, 3000));
    for (int i = 0; i < 3; ++i) sizes.push_back(random.in(32768, 80000));
    return sizes;
}

}  // namespace lockstep::test

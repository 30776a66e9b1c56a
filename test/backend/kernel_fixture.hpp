// What the tests of the operations share: random arrays whose ends are guarded, comparison by bytes, and arrays that
// lie in the memory of the backend under test. A test is written once for all backends: every_backend() is found at
// link time, and says which. The seed is Catch's (--rng-seed), 1 unless given; every case prints it.
//
//   for (const NamedBackend& on : every_backend()) {
//       INFO(on.name);
//       const OnDevice x(on, host_x);             // host_x: Floats, or values({...}) of numbers
//       OnDevice<float> y(on, n);                 // n zeros to be written
//       on->relu(on.main(), n, x.data(), y.data());
//       REQUIRE(same_bytes(y.fetch(), expected)); // guards included
//   }
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"

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

/// n values in host memory, with guards before and after that no operation may touch.
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

    static constexpr int64_t kGuard = 37;
    /// Guards and values.
    std::span<T> whole() { return all_; }
    std::span<const T> whole() const { return all_; }

  private:
    static T guard() { return static_cast<T>(77); }
    static bool is_guard(T value) { return value == guard(); }

    int64_t n_;
    std::vector<T> all_;
};
using Floats = Guarded<float>;

template <class T>
Guarded<T> values(const std::vector<T>& list) {
    Guarded<T> made(static_cast<int64_t>(list.size()));
    for (int64_t i = 0; i < made.size(); ++i) made[i] = list[static_cast<std::size_t>(i)];
    return made;
}
template <class T>
Guarded<T> values(std::initializer_list<T> list) {
    return values(std::vector<T>(list));
}

/// How the arrays of a test lie on a device: on a border of 256 bytes, as the tensors of a network do, where vector
/// loads are possible; or one element beside it.
enum class Placement { kAligned, kOdd };

struct NamedBackend {
    std::string name;
    std::unique_ptr<Backend> backend;
    Placement placement = Placement::kOdd;

    Backend* operator->() const { return backend.get(); }
    Stream& main() const { return backend->main(); }
};

/// The backends that this executable tests, with up to `most` threads or streams each: cpu_devices.cpp, or the file of
/// another device.
std::vector<NamedBackend> every_backend(int most = 3);

/// A copy of a host array, guards and all, in the memory of a backend.
template <class T>
class OnDevice {
  public:
    OnDevice(const NamedBackend& on, const Guarded<T>& host)
        : backend_(on.backend.get()),
          n_(host.size()),
          skipped_(on.placement == Placement::kAligned ? kToBorder : 0),
          buffer_(backend_->allocate((skipped_ + host.whole().size()) * sizeof(T))) {
        backend_->upload(backend_->main(), host.whole().data(), first(), host.whole().size_bytes());
    }
    OnDevice(const NamedBackend& on, int64_t n, T value = T{}) : OnDevice(on, Guarded<T>(n, value)) {}

    T* data() const { return first() + Guarded<T>::kGuard; }
    int64_t size() const { return n_; }
    /// What the main stream has made of it.
    Guarded<T> fetch() const {
        Guarded<T> host(n_);
        backend_->download(backend_->main(), first(), host.whole().data(), host.whole().size_bytes());
        return host;
    }

  private:
    static constexpr std::size_t kBorder = 256, kGuardBytes = Guarded<T>::kGuard * sizeof(T);
    static constexpr std::size_t kToBorder = (kBorder - kGuardBytes % kBorder) / sizeof(T);
    T* first() const { return reinterpret_cast<T*>(buffer_->data()) + skipped_; }

    Backend* backend_;
    int64_t n_;
    std::size_t skipped_;
    std::unique_ptr<Buffer> buffer_;
};

// Lists of arrays: one for each root of a fold program.
template <class T>
std::vector<OnDevice<T>> on_device(const NamedBackend& on, const std::vector<Guarded<T>>& host) {
    std::vector<OnDevice<T>> made;
    for (const Guarded<T>& each : host) made.emplace_back(on, each);
    return made;
}
template <class Array>
auto pointers(std::vector<Array>& arrays) {
    std::vector<decltype(arrays.front().data())> all;
    for (Array& each : arrays) all.push_back(each.data());
    return all;
}
template <class T>
std::vector<Guarded<T>> fetch(const std::vector<OnDevice<T>>& arrays) {
    std::vector<Guarded<T>> host;
    for (const OnDevice<T>& each : arrays) host.push_back(each.fetch());
    return host;
}
template <class T>
bool same_bytes(const std::vector<Guarded<T>>& a, const std::vector<Guarded<T>>& b) {
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
        if (!same_bytes(a[i], b[i])) return false;
    }
    return a.size() == b.size();
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

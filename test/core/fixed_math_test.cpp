// The project's own exp, log, sin, cos and pow against long double, in units of the last place, and the bits that they
// must always give.
#include "core/fixed_math.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/hash.hpp"

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kInfinityF = std::numeric_limits<float>::infinity();

// |got - exact| in units in the last place of T at `exact`.
template <class T>
double ulps(T got, long double exact) {
    if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) && std::isnan(exact) ? 0.0 : kInfinity;
    if (std::isinf(got))
        return std::fabs(exact) > static_cast<long double>(std::numeric_limits<T>::max()) ? 0.0 : kInfinity;
    int exponent = 0;
    std::frexp(exact, &exponent);
    exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
    return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) /
                               std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits));
}

// The largest error seen, printed when it goes.
struct Largest {
    const char* name;
    double error = 0.0;
    double at = 0.0;
    double at2 = 0.0;
    void see(double ulp, double x, double y = 0.0) {
        if (ulp > error || std::isnan(ulp)) *this = {name, ulp, x, y};
    }
    explicit Largest(const char* n) : name(n) {}
    Largest(const char* n, double e, double x, double y) : name(n), error(e), at(x), at2(y) {}
    void check() const {
        fmt::print("{}: at most {:.3f} ulp, at {:a}, {:a}\n", name, error, at, at2);
        CHECK(error <= 2.0);
    }
};

// Numbers with uniform exponents, so that tiny ones are met as well as large ones.
class Random {
  public:
    double between(double low, double high) {
        return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53;
    }
    double exponents(int low, int high) {
        return std::ldexp(between(1.0, 2.0), low + static_cast<int>(bits_() % static_cast<uint64_t>(high - low + 1)));
    }
    double sign() { return bits_() % 2 == 0 ? 1.0 : -1.0; }

  private:
    std::mt19937_64 bits_{20240607};  // fixed, so that a failure can be repeated
};

constexpr int kTried = 300'000;

TEST_CASE("exp in fp64 is within 2 ulp", "[fixed_math]") {
    Largest largest("exp, fp64");
    Random random;
    const auto see = [&](double x) { largest.see(ulps(exp_fixed(x), std::exp(static_cast<long double>(x))), x); };
    for (int i = 0; i < kTried; ++i) {
        see(random.between(-745.0, 709.7));
        see(random.sign() * random.exponents(-60, 9));
    }
    for (int n = -1074; n <= 1023; ++n) {  // where the reduction steps, and where results are subnormal
        const double at = (n + 0.5) * 0.69314718055994530942;
        for (const double x : {at, std::nextafter(at, kInfinity), std::nextafter(at, -kInfinity)}) see(x);
    }
    for (const double x : {0.0, -0.0, 709.782712893384, -745.1332191019411, -708.3964185322641, 1e-300}) see(x);
    largest.check();
    CHECK(exp_fixed(0.0) == 1.0);
    CHECK(exp_fixed(709.79) == kInfinity);
    CHECK(exp_fixed(kInfinity) == kInfinity);
    CHECK(exp_fixed(-745.14) == 0.0);
    CHECK(exp_fixed(-kInfinity) == 0.0);
    CHECK(std::isnan(exp_fixed(std::nan(""))));
}

TEST_CASE("log in fp64 is within 2 ulp", "[fixed_math]") {
    Largest largest("log, fp64");
    Random random;
    const auto see = [&](double x) { largest.see(ulps(log_fixed(x), std::log(static_cast<long double>(x))), x); };
    for (int i = 0; i < kTried; ++i) {
        see(random.exponents(-1074, 1023));
        see(random.between(0.5, 2.0));
        see(1.0 + random.sign() * random.exponents(-52, -2));
    }
    for (const double x :
         {1.0, std::sqrt(0.5), std::sqrt(2.0), 0x1p-1022, 0x1p-1074, std::numeric_limits<double>::max()}) {
        see(x);
        see(std::nextafter(x, 1.0));
        see(std::nextafter(x, 0.7));
    }
    largest.check();
    CHECK(log_fixed(1.0) == 0.0);
    CHECK(log_fixed(0.0) == -kInfinity);
    CHECK(log_fixed(kInfinity) == kInfinity);
    CHECK(std::isnan(log_fixed(-1.0)));
    CHECK(std::isnan(log_fixed(std::nan(""))));
}

TEST_CASE("sin and cos are within 2 ulp up to 2^20, nearest to the multiples of pi/2 too", "[fixed_math]") {
    Largest largest_sin("sin");
    Largest largest_cos("cos");
    Random random;
    const auto see = [&](double x) {
        largest_sin.see(ulps(sin_fixed(x), std::sin(static_cast<long double>(x))), x);
        largest_cos.see(ulps(cos_fixed(x), std::cos(static_cast<long double>(x))), x);
    };
    for (int i = 0; i < kTried; ++i) {
        see(random.between(-6.3, 6.3));
        see(random.sign() * random.exponents(-40, 19));
    }
    for (int n = 1; n < 667'000; n += n < 2000 ? 1 : 7) {  // where all leading digits cancel, and where quarters meet
        const double multiple = static_cast<double>(n * (3.14159265358979323846264338328L / 2));
        see(multiple);
        see(-std::nextafter(multiple, 0.0));
        see(static_cast<double>((n + 0.5L) * (3.14159265358979323846264338328L / 2)));
    }
    for (const double x : {0x1p20, -0x1p20, 1e-300, 0x1p-1074}) see(x);
    largest_sin.check();
    largest_cos.check();
    CHECK(sin_fixed(0.0) == 0.0);
    CHECK(cos_fixed(0.0) == 1.0);
    CHECK(std::isnan(sin_fixed(0x1.1p20)));
    CHECK(std::isnan(cos_fixed(kInfinity)));
    CHECK(std::isnan(cos_fixed(std::nan(""))));
}

// Points that cover results from the smallest subnormal to the largest number.
template <class See>
void for_many_powers(const See& see) {
    Random random;
    for (int i = 0; i < kTried / 2; ++i) {
        const double x = random.exponents(-30, 30);
        see(x, random.between(-744.0, 709.0) / std::log(x));
        see(random.between(0.9, 1.0), random.exponents(-3, 13));  // decay to the power of a step number
        see(random.exponents(-1074, 1023), random.between(-1.0, 1.0));
        see(1.0 + random.sign() * random.exponents(-52, -2), random.sign() * random.exponents(-10, 50));
    }
}

TEST_CASE("pow is within 2 ulp", "[fixed_math]") {
    Largest largest("pow");
    const auto see = [&](double x, double y) {
        const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
        largest.see(ulps(pow_fixed(x, y), exact), x, y);
    };
    for_many_powers(see);
    for (const double x : {0x1p-1074, 0.1, 0.5, 2.0, 10.0}) {
        for (const double y : {-1.0, 0.5, 1.0, 2.0, 3.0, 100.0}) see(x, y);
    }
    largest.check();
}

TEST_CASE("pow without the extra digits of its logarithm is not within 2 ulp", "[fixed_math]") {
    double largest = 0.0;
    for_many_powers([&](double x, double y) {
        const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
        largest = std::max(largest, ulps(exp_fixed(y * log_fixed(x)), exact));
    });
    CHECK(largest > 2.0);
}

TEST_CASE("pow at the edges is what IEEE 754 says of pow for x >= 0", "[fixed_math]") {
    const double nan = std::nan("");
    for (const double x : {0.0, 0.3, 1.0, 5.0, kInfinity, nan}) CHECK(pow_fixed(x, 0.0) == 1.0);
    for (const double y : {-kInfinity, -1.5, 3.0, kInfinity, nan}) CHECK(pow_fixed(1.0, y) == 1.0);
    CHECK(pow_fixed(0.0, 2.0) == 0.0);
    CHECK(pow_fixed(0.0, -2.0) == kInfinity);
    CHECK(pow_fixed(kInfinity, 2.0) == kInfinity);
    CHECK(pow_fixed(kInfinity, -2.0) == 0.0);
    CHECK(pow_fixed(0.5, kInfinity) == 0.0);
    CHECK(pow_fixed(2.0, kInfinity) == kInfinity);
    CHECK(pow_fixed(0.5, -kInfinity) == kInfinity);
    CHECK(pow_fixed(2.0, -kInfinity) == 0.0);
    CHECK(pow_fixed(10.0, 1000.0) == kInfinity);
    CHECK(pow_fixed(10.0, -1000.0) == 0.0);
    CHECK(pow_fixed(2.0, 10.0) == 1024.0);
    CHECK(std::isnan(pow_fixed(-1.0, 2.0)));
    CHECK(std::isnan(pow_fixed(nan, 2.0)));
    CHECK(std::isnan(pow_fixed(2.0, nan)));
}

TEST_CASE("an integer power is the product of squares, lowest binary digit first", "[fixed_math]") {
    CHECK(power_int_fixed(0.9, 0) == 1.0);
    CHECK(power_int_fixed(0.9, 1) == 0.9);
    CHECK(power_int_fixed(3.0, 20) == 3486784401.0);
    const double x = 0.999;
    const double x2 = x * x;
    const double x4 = x2 * x2;
    const double x8 = x4 * x4;
    CHECK(power_int_fixed(x, 13) == (x * x4) * x8);
    CHECK(power_int_fixed(0.999, 1'000'000'000'000) == 0.0);
    for (const unsigned long long n : {10ULL, 1000ULL, 12345ULL, 100000ULL}) {
        const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(n));
        CHECK(std::fabs(power_int_fixed(x, n) - exact) <= static_cast<long double>(n) * 0x1p-53L * exact);
    }
}

TEST_CASE("exp in fp32 is within 2 ulp over softmax's range", "[fixed_math]") {
    Largest largest("exp, fp32");
    for (int64_t bits = 0; bits <= std::bit_cast<int32_t>(87.33654f); bits += 499) {
        for (const float x :
             {-std::bit_cast<float>(static_cast<int32_t>(bits)), std::bit_cast<float>(static_cast<int32_t>(bits))}) {
            largest.see(ulps(exp_fixed(x), std::exp(static_cast<double>(x))), x);
        }
    }
    for (const float x : {0.0f, -0.0f, -87.33654f, 88.0f})
        largest.see(ulps(exp_fixed(x), std::exp(static_cast<double>(x))), x);
    largest.check();
    CHECK(exp_fixed(0.0f) == 1.0f);
    CHECK(exp_fixed(-0.0f) == 1.0f);
    CHECK(exp_fixed(-87.34f) == 0.0f);
    CHECK_FALSE(std::signbit(exp_fixed(-1000.0f)));
    CHECK(exp_fixed(-kInfinityF) == 0.0f);
    CHECK(exp_fixed(88.01f) == kInfinityF);
    CHECK(exp_fixed(kInfinityF) == kInfinityF);
    CHECK(std::isnan(exp_fixed(std::nanf(""))));
}

TEST_CASE("log in fp32 is within 2 ulp over all normal numbers", "[fixed_math]") {
    Largest largest("log, fp32");
    const auto see = [&](float x) { largest.see(ulps(log_fixed(x), std::log(static_cast<double>(x))), x); };
    for (int64_t bits = 0x00800000; bits < 0x7f800000; bits += 997)
        see(std::bit_cast<float>(static_cast<int32_t>(bits)));
    for (int32_t bits = 0x3f800000 - 100'000; bits < 0x3f800000 + 100'000; ++bits) see(std::bit_cast<float>(bits));
    largest.check();
    CHECK(log_fixed(1.0f) == 0.0f);
    CHECK(log_fixed(0.0f) == -kInfinityF);
    CHECK(log_fixed(kInfinityF) == kInfinityF);
    CHECK(std::isnan(log_fixed(-1.0f)));
    CHECK(std::isnan(log_fixed(-kInfinityF)));
    CHECK(std::isnan(log_fixed(std::nanf(""))));
}

// Not run by default: every float, about a minute and a half.
TEST_CASE("exp and log in fp32 are within 2 ulp for every float of their ranges", "[.][exhaustive]") {
    Largest largest_exp("exp, every float");
    Largest largest_log("log, every float");
    for (int64_t bits = 0; bits < 0x7f800000; ++bits) {
        const float x = std::bit_cast<float>(static_cast<int32_t>(bits));
        if (x <= 87.33654f) largest_exp.see(ulps(exp_fixed(-x), std::exp(static_cast<double>(-x))), -x);
        if (x <= 88.0f) largest_exp.see(ulps(exp_fixed(x), std::exp(static_cast<double>(x))), x);
        if (bits >= 0x00800000) largest_log.see(ulps(log_fixed(x), std::log(static_cast<double>(x))), x);
    }
    largest_exp.check();
    largest_log.check();
}

// The bits of f at 20,000 points that IEEE operations alone produce.
template <class T, class F>
std::string hash_of(const F& f, T first, T ratio, T offset) {
    std::vector<T> values;
    T x = first;
    for (int i = 0; i < 20'000; ++i) {
        values.push_back(f(x + offset));
        x = x * ratio;
    }
    return hex16(hash64(std::as_bytes(std::span(values))));
}

TEST_CASE("the functions give the same bits on every machine and compiler: a change needs a new arithmetic number",
          "[fixed_math]") {
    CHECK(hash_of<double>([](double x) { return exp_fixed(x); }, 1e-6, 1.001, -700.0) == "aea184181a3d7316");
    CHECK(hash_of<double>([](double x) { return log_fixed(x); }, 1e-6, 1.001, 0.0) == "0b1e8202be05d7be");
    CHECK(hash_of<double>([](double x) { return sin_fixed(x); }, 1e-4, 1.001, 0.0) == "12b28016f6fb9355");
    CHECK(hash_of<double>([](double x) { return cos_fixed(x); }, 1e-4, 1.001, 0.0) == "b170ad3ffa0ca6df");
    CHECK(hash_of<double>([](double x) { return pow_fixed(0.97, x); }, 1e-6, 1.001, 0.0) == "0cad6d06770ace6f");
    CHECK(hash_of<double>([](double x) { return pow_fixed(x, 0.75); }, 1e-6, 1.001, 0.0) == "d356f935254d3fc9");
    CHECK(hash_of<float>([](float x) { return exp_fixed(x); }, 1e-6f, 1.0009f, -60.0f) == "9227f8018bf4d96f");
    CHECK(hash_of<float>([](float x) { return log_fixed(x); }, 1e-6f, 1.001f, 0.0f) == "dd86aacc92a3853f");
}

}  // namespace
}  // namespace lockstep

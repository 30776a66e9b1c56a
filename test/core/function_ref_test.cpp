// A function reference calls what it was made of, and owns nothing.
#include "core/function_ref.hpp"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

int twice(FunctionRef<int(int)> f) {
    return f(1) + f(2);
}

TEST_CASE("a function reference calls the callable itself, not a copy", "[function_ref]") {
    int calls = 0;
    CHECK(twice([&](int x) {
              ++calls;
              return 10 * x;
          }) == 30);
    CHECK(calls == 2);

    struct Counter {
        int count = 0;
        int operator()(int x) { return count += x; }
    } counter;
    CHECK(twice(counter) == 4);
    CHECK(counter.count == 3);
}

TEST_CASE("a copied function reference refers to the same callable", "[function_ref]") {
    int seen = 0;
    const auto callable = [&](int x) { seen = x; };
    const FunctionRef<void(int)> first = callable;
    const FunctionRef<void(int)> second = first;  // NOLINT(performance-unnecessary-copy-initialization)
    second(7);
    CHECK(seen == 7);
}

}  // namespace
}  // namespace lockstep

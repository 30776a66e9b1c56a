// json_number and json_string: read back by another parser to the same bits.
#include "io/json_number.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

using namespace lockstep;

namespace {

template <class Real>
Real read_back(const std::string& text) {
    Real value{};
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    REQUIRE(result.ptr == text.data() + text.size());
    return value;
}

// The number grammar of RFC 8259: -? int frac? exp?
bool is_json_number(std::string_view t) {
    const auto digits = [&] {
        size_t n = 0;
        while (n < t.size() && t[n] >= '0' && t[n] <= '9') ++n;
        t.remove_prefix(n);
        return n;
    };
    if (!t.empty() && t[0] == '-') t.remove_prefix(1);
    const bool zero = !t.empty() && t[0] == '0';
    const size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    if (!t.empty() && t[0] == '.') {
        t.remove_prefix(1);
        if (digits() == 0) return false;
    }
    if (!t.empty() && t[0] == 'e') {
        t.remove_prefix(1);
        if (!t.empty() && (t[0] == '+' || t[0] == '-')) t.remove_prefix(1);
        if (digits() == 0) return false;
    }
    return t.empty();
}

}  // namespace

TEST_CASE("numbers are the shortest decimals of their own type, and never look like integers") {
    CHECK(json_number(0.05f) == "0.05");
    CHECK(json_number(0.05) == "0.05");
    CHECK(json_number(static_cast<double>(0.05f)) == "0.05000000074505806");
    CHECK(json_number(1e-8) == "1e-08");
    CHECK(json_number(1.0f) == "1.0");
    CHECK(json_number(0.0) == "0.0");
    CHECK(json_number(-0.0f) == "-0.0");
    CHECK(json_number(60000.0) == "60000.0");
    CHECK(json_number(1e20f) == "1e+20");
    CHECK(json_number(std::numeric_limits<float>::denorm_min()) == "1e-45");
    CHECK(json_number(std::numeric_limits<double>::max()) == "1.7976931348623157e+308");
}

TEST_CASE("what JSON cannot say is null") {
    CHECK(json_number(std::nanf("")) == "null");
    CHECK(json_number(std::numeric_limits<double>::infinity()) == "null");
    CHECK(json_number(-std::numeric_limits<float>::infinity()) == "null");
}

TEST_CASE("random bit patterns read back to the same bits and are valid JSON") {
    const unsigned seed = 20240611;
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 200'000; ++i) {
        const auto f = std::bit_cast<float>(static_cast<uint32_t>(random()));
        const auto d = std::bit_cast<double>(random());
        if (std::isfinite(f)) {
            const std::string text = json_number(f);
            if (std::bit_cast<uint32_t>(read_back<float>(text)) != std::bit_cast<uint32_t>(f)) FAIL(text);
            if (!is_json_number(text)) FAIL(text);
        }
        if (std::isfinite(d)) {
            const std::string text = json_number(d);
            if (std::bit_cast<uint64_t>(read_back<double>(text)) != std::bit_cast<uint64_t>(d)) FAIL(text);
            if (!is_json_number(text)) FAIL(text);
        }
    }
}

TEST_CASE("strings are quoted and escaped") {
    CHECK(json_string("") == "\"\"");
    CHECK(json_string("fc1.weight") == "\"fc1.weight\"");
    CHECK(json_string("a \"b\" \\ /") == "\"a \\\"b\\\" \\\\ /\"");
    CHECK(json_string("\b\f\n\r\t\x01\x1f\x7f") == "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    CHECK(json_string(std::string("\0", 1)) == "\"\\u0000\"");
    CHECK(json_string("层 é \xf0\x9f\x99\x82") == "\"层 é \xf0\x9f\x99\x82\"");
}

TEST_CASE("bytes that are no UTF-8 become the replacement character, one each") {
    const std::string bad = "\xef\xbf\xbd";
    CHECK(json_string("a\xff"
                      "b") == "\"a" + bad + "b\"");
    CHECK(json_string("\xc3") == "\"" + bad + "\"");                                // cut off
    CHECK(json_string("\xc0\xaf") == "\"" + bad + bad + "\"");                      // overlong
    CHECK(json_string("\xed\xa0\x80") == "\"" + bad + bad + bad + "\"");            // a surrogate
    CHECK(json_string("\xf4\x90\x80\x80") == "\"" + bad + bad + bad + bad + "\"");  // above U+10FFFF
}

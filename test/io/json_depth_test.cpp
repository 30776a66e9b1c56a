// How deep JSON from a disk may nest.
#include "io/json_depth.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

bool refused(const std::string& text) {
    const auto error = caught([&] { check_json_depth(text, "f"); });
    if (error)
        CHECK((error->kind == ErrorKind::kData && error->says("f: damaged: lists or objects nest more than 64")));
    return error.has_value();
}

std::string nested(int depth, const std::string& inside = "") {
    std::string text = inside;
    for (int i = 0; i < depth; ++i) text = i % 2 == 0 ? "[" + text + "]" : "{\"a\":" + text + "}";
    return text;
}

}  // namespace

TEST_CASE("lists and objects may nest 64 deep and no deeper, closed or not") {
    CHECK_FALSE(refused(""));
    CHECK_FALSE(refused(nested(64, "1")));
    CHECK(refused(nested(65, "1")));
    CHECK(refused(std::string(300'000, '[')));
    CHECK_FALSE(refused(std::string(300'000, ']')));
    std::string wide = "[";
    for (int i = 0; i < 1000; ++i) wide += nested(60) + ",";
    CHECK_FALSE(refused(wide));
}

TEST_CASE("brackets within strings nest nothing, whatever is escaped there") {
    const std::string brackets(100, '[');
    CHECK_FALSE(refused("[\"" + brackets + "\"]"));
    CHECK_FALSE(refused("[\"\\\"" + brackets + "\"]"));
    CHECK(refused("[\"\\\\\"" + brackets));
    CHECK(refused("[\"a\", \"b\"," + brackets));
}

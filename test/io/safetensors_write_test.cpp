// Writing safetensors: equal tensors give equal bytes, and those that the reference writer would give.
#include <catch2/catch.hpp>

#include "io/files.hpp"
#include "io/safetensors.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<float> kFour{1, 2, 3, 4};

TensorView view(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) {
    return {name, std::move(shape), "F32", std::as_bytes(std::span(values))};
}

}  // namespace

TEST_CASE("the bytes of a file are exactly these") {
    const std::vector<float> bias{-1.5f};
    const Bytes bytes = safetensors_bytes({view("fc1.weight", {2, 2}, kFour), view("b", {1}, bias)},
                                          {{"format", "pt"}, {"a", "\"x\"\n"}});
    const std::string header =
        R"({"__metadata__":{"format":"pt","a":"\"x\"\n"},"fc1.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[16,20]}})";
    REQUIRE(header.size() == 166);
    const std::string length("\xa8\0\0\0\0\0\0\0", 8);  // 168: padded with 2 spaces
    const std::string data("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xc0\xbf", 20);
    CHECK(text_of(bytes) == length + header + std::string(2, ' ') + data);
}

TEST_CASE("a file of the reference library is written again byte for byte") {
    for (const char* name : {"hf_basic", "hf_empty", "hf_no_metadata", "hf_unicode"}) {
        const Bytes original = read_file(std::string(LOCKSTEP_TEST_FILES "/") + name + ".safetensors");
        const SafetensorsFile f = SafetensorsFile::parse(original, name);
        std::vector<std::pair<std::string, std::string>> metadata(f.metadata().begin(), f.metadata().end());
        if (std::string(name) == "hf_unicode")
            std::swap(metadata.at(0), metadata.at(1));  // not in alphabetical order there
        CHECK(text_of(safetensors_bytes(f.tensors(), metadata)) == text_of(original));
    }
}

TEST_CASE("what was written reads back, and data always start at a multiple of 8") {
    for (size_t length = 1; length < 20; ++length) {
        const std::string name(length, 'n');
        const Bytes bytes = safetensors_bytes({view(name, {4}, kFour)}, {});
        CHECK((bytes.size() - 16) % 8 == 0);
        const SafetensorsFile f = SafetensorsFile::parse(bytes, "f");
        REQUIRE(f.find(name));
        CHECK(text_of(f.find(name)->bytes) == text_of(std::as_bytes(std::span(kFour))));
    }
}

TEST_CASE("a tensor that contradicts itself is not written") {
    TensorView unknown = view("w", {4}, kFour);
    unknown.dtype = "F31";
    struct Row {
        std::vector<TensorView> tensors;
        const char* reason;
    };
    for (const Row& row : {Row{{view("w", {3}, kFour)}, "needs 12 bytes and has 16"},
                           Row{{view("w", {4}, kFour), view("w", {4}, kFour)}, "used twice"},
                           Row{{view("__metadata__", {4}, kFour)}, "reserved"}, Row{{unknown}, "unknown type F31"}}) {
        const auto error = caught([&] { safetensors_bytes(row.tensors, {}); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kRuntime);
        CHECK(error->says(row.reason));
    }
}

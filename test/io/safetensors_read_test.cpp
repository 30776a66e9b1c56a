// Reading safetensors: files of the reference library value by value, and malformed ones refused one by one.
#include <catch2/catch.hpp>
#include <cstring>

#include "io/files.hpp"
#include "io/safetensors.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string file(const std::string& name) {
    return std::string(LOCKSTEP_TEST_FILES "/") + name + ".safetensors";
}

template <class T>
std::vector<T> values(const TensorView* tensor) {
    REQUIRE(tensor);
    std::vector<T> out(tensor->bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), tensor->bytes.data(), tensor->bytes.size());
    return out;
}

Bytes with_header(const std::string& header, size_t data_bytes) {
    std::string text;
    for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i));
    return bytes_of(text + header + std::string(data_bytes, '\0'));
}

using Shape = std::vector<int64_t>;

}  // namespace

TEST_CASE("a file of the reference library reads as it was written") {
    const SafetensorsFile f = SafetensorsFile::read(file("hf_basic"));
    std::vector<std::string> names;
    for (const TensorView& t : f.tensors()) names.push_back(t.name);
    CHECK(names ==
          std::vector<std::string>{"step", "empty", "fc1.bias", "fc1.weight", "scalar", "bf", "half", "u8", "mask"});
    CHECK(f.metadata() == std::map<std::string, std::string>{{"format", "pt"}, {"note", "hello"}});
    CHECK(f.find("fc1.weight")->shape == Shape{3, 4});
    CHECK(values<float>(f.find("fc1.weight")) ==
          std::vector<float>{0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75});
    CHECK(values<float>(f.find("fc1.bias")) == std::vector<float>{-1, 0, 1});
    CHECK(values<int64_t>(f.find("step")) == std::vector<int64_t>{1234567890123});
    CHECK(f.find("scalar")->shape.empty());
    CHECK(values<float>(f.find("scalar")) == std::vector<float>{7.5});
    CHECK(f.find("empty")->shape == Shape{0, 4});
    CHECK(f.find("empty")->bytes.empty());
    CHECK(f.find("mask")->dtype == "BOOL");
    CHECK(values<uint8_t>(f.find("mask")) == std::vector<uint8_t>{1, 0, 1, 1, 0});
    CHECK(values<uint8_t>(f.find("u8")) == std::vector<uint8_t>{0, 127, 255});
    CHECK(values<uint16_t>(f.find("bf")) == std::vector<uint16_t>{0x3f80, 0xc000, 0x3f00, 0x4049});
    CHECK(values<uint16_t>(f.find("half")) == std::vector<uint16_t>{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500});
    CHECK(f.find("fc2.weight") == nullptr);
}

TEST_CASE("no tensors, no metadata, padding, any order of the header and names in any script are legal") {
    CHECK(SafetensorsFile::read(file("hf_empty")).tensors().empty());
    const SafetensorsFile plain = SafetensorsFile::read(file("hf_no_metadata"));
    CHECK(plain.metadata().empty());
    CHECK(values<float>(&plain.tensors().at(0)) == std::vector<float>{1, 2, 3, 4});
    CHECK(values<float>(SafetensorsFile::read(file("ok_padded_header")).find("w")) == std::vector<float>{1, 2, 3, 4});
    const SafetensorsFile mixed = SafetensorsFile::read(file("ok_out_of_order"));
    CHECK(values<float>(mixed.find("a")) == std::vector<float>{1, 2});
    CHECK(values<float>(mixed.find("b")) == std::vector<float>{3, 4});
    const SafetensorsFile unicode = SafetensorsFile::read(file("hf_unicode"));
    CHECK(values<float>(unicode.find("层.权重")) == std::vector<float>{1, 2});
    CHECK(values<float>(unicode.find("a b\"c\\d")) == std::vector<float>{3});
    CHECK(values<float>(unicode.find("ключ\n")) == std::vector<float>{4});
    CHECK(unicode.metadata().at("é") == "\u2028 \"q\" \t");
}

TEST_CASE("the malformed files that the reference library refuses are refused, each for its own reason") {
    struct Row {
        const char *name, *reason;
    };
    for (const Row& row :
         {Row{"bad_data_truncated",
              "truncated: tensor w ends at data offset 16 (file offset 0x51), but the data end at 12"},
          Row{"bad_header_longer_than_file", "truncated: header length 1000 at 0x0, but 73 bytes follow"},
          Row{"bad_hole",
              "tensor b starts at data offset 12, the one before it ends at 8 (file offset 0x81); it leaves a hole"},
          Row{"bad_not_json", "the header is no JSON, at 0xe: "},
          Row{"bad_overlap",
              "tensor b starts at data offset 8, the one before it ends at 12 (file offset 0x7d); it overlaps"},
          Row{"bad_shape_mismatch", "tensor w: shape [2,3] of F32 needs 24 bytes, data_offsets [0,16] give 16"},
          Row{"bad_trailing_bytes", "2 bytes at 0x51, behind the last tensor, belong to none"}}) {
        const auto error = caught([&] { SafetensorsFile::read(file(row.name)); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->says(file(row.name) + ": "));
        CHECK_THAT(error->message, Catch::Contains(row.reason));
        CHECK(error->one_line());
    }
}

TEST_CASE("a header that says anything else than the format allows is refused") {
    struct Row {
        std::string header;
        size_t data;
        const char* reason;
    };
    const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
    REQUIRE_FALSE(caught([&] { SafetensorsFile::parse(with_header("{\"w\":{" + good + "}}", 8), "f"); }));
    for (const Row& row : {
             Row{"", 0, "does not start with '{'"},
             Row{" {}", 0, "does not start with '{'"},
             Row{"[]", 0, "does not start with '{'"},
             Row{"{} {}", 0, "the header is no JSON"},
             Row{"{\"w\":{" + good + "}", 8, "the header is no JSON"},
             Row{"{\"w\xff\":{" + good + "}}", 8, "the header is no JSON"},
             Row{"{\"w\":{" + good + "},\"w\":{" + good + "}}", 8, "the header at 0x8 holds the key \"w\" twice"},
             Row{R"({"__metadata__":{},"__metadata__":{}})", 0, "holds the key \"__metadata__\" twice"},
             Row{R"({"__metadata__":{"a":"1","a":"2"}})", 0, "holds the key \"a\" twice"},
             Row{"{\"w\":{\"dtype\":\"F32\"," + good + "}}", 8, "holds the key \"dtype\" twice"},
             Row{R"({"__metadata__":{"a":1}})", 0, "__metadata__.a is 1, a string is needed"},
             Row{R"({"__metadata__":"x"})", 0, "__metadata__ is no object of strings"},
             Row{R"({"w":7})", 0, "tensor w: 7 is no object"},
             Row{R"({"w":{"shape":[2],"data_offsets":[0,8]}})", 8, "tensor w: dtype is missing"},
             Row{R"({"w":{"dtype":"F32","data_offsets":[0,8]}})", 8, "tensor w: shape is missing"},
             Row{R"({"w":{"dtype":"F32","shape":[2]}})", 8, "tensor w: data_offsets is missing"},
             Row{R"({"w":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8, "tensor w: unknown dtype F31"},
             Row{R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "-2 in shape is no whole number"},
             Row{R"({"w":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "2.0 in shape is no whole number"},
             Row{R"({"w":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})", 8, "\"2\" in shape is no whole number"},
             Row{R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", 8, "3 data_offsets, two are needed"},
             Row{R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "data_offsets [8,0] run backwards"},
             Row{R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "tensor w starts at data offset 4"},
             Row{R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                 "no tensor of type F32"},
             Row{R"({"w":{"dtype":"F32","shape":[9223372036854775809],"data_offsets":[0,4]}})", 4,
                 "no tensor of type F32"},
             Row{R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "no tensor of type F4"},
             Row{R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,18446744073709551616]}})", 8,
                 "no whole number"},
             Row{R"({"w":1e999})", 0, "a number beyond the range of doubles"},
             Row{"{\"a\\nb" + std::string(5000, 'c') + "\":7}", 0, "tensor a bccc"},
             Row{"{}", 4, "4 bytes at 0xa, behind the last tensor, belong to none"},
         }) {
        const auto error = caught([&] { SafetensorsFile::parse(with_header(row.header, row.data), "f"); });
        CAPTURE(row.header);
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK_THAT(error->message, Catch::StartsWith("f: ") && Catch::Contains(row.reason));
        CHECK(error->one_line());
        CHECK(error->message.size() < 500);
    }
}

TEST_CASE("lists and objects within one another by the hundred thousand are refused, wherever they stand") {
    constexpr size_t kDeep = 200'000;
    const std::string lists = std::string(kDeep, '[') + std::string(kDeep, ']');
    std::string objects = "0";
    for (size_t i = 0; i < 9; ++i) objects = "{\"a\":" + objects + "}";
    for (const std::string& header :
         {"{\"w\":" + lists + "}", R"({"w":{"dtype":"F32","data_offsets":[0,4],"shape":)" + lists + "}}",
          R"({"__metadata__":{"x":)" + lists + "}}", objects}) {
        const auto error = caught([&] { SafetensorsFile::parse(with_header(header, 4), "f"); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->says("f: the header at 0x8 nests lists or objects deeper than any entry does"));
    }
}

TEST_CASE("a file shorter than a header length, and absurd header lengths, are refused before anything is allocated") {
    for (size_t size = 0; size < 8; ++size) {
        const auto error = caught([&] { SafetensorsFile::parse(Bytes(size), "f"); });
        REQUIRE(error);
        CHECK(error->says(fmt::format("truncated: {} bytes", size)));
    }
    Bytes bytes(200);
    for (size_t i = 0; i < 8; ++i) bytes[i] = std::byte{0xff};
    const auto error = caught([&] { SafetensorsFile::parse(bytes, "f"); });
    REQUIRE(error);
    CHECK(error->says("header length 18446744073709551615 at 0x0, at most 100000000 are allowed"));
}

TEST_CASE("a good file cut anywhere is refused") {
    const Bytes whole = read_file(file("hf_basic"));
    for (size_t size = 0; size < whole.size(); ++size) {
        const auto error = caught([&] { SafetensorsFile::parse(Bytes(whole.begin(), whole.begin() + size), "f"); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
    }
}

TEST_CASE("views stay good when the file object moves") {
    SafetensorsFile moved;
    {
        SafetensorsFile f = SafetensorsFile::read(file("hf_no_metadata"));
        moved = std::move(f);
    }
    CHECK(values<float>(moved.find(moved.tensors().at(0).name)) == std::vector<float>{1, 2, 3, 4});
}

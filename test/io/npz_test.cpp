// write_npz, read back by an independent walk over the zip's structures, and compared with what NumPy writes.
#include "io/npz.hpp"

#include <libdeflate.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "io/files.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

uint64_t number(const Bytes& bytes, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes.at(at + i)) << (8 * i);
    return value;
}

struct Member {
    std::string name, content;
    uint64_t flags, date, time;
};

// Every field that a reader relies on is checked on the way.
std::vector<Member> members(const Bytes& zip) {
    const size_t end = zip.size() - 22;
    REQUIRE(number(zip, end, 4) == 0x06054b50);
    const uint64_t count = number(zip, end + 10, 2), start = number(zip, end + 16, 4);
    CHECK(number(zip, end + 8, 2) == count);
    CHECK(start + number(zip, end + 12, 4) == end);
    CHECK(number(zip, end + 20, 2) == 0);
    std::vector<Member> list;
    size_t at = start, expected_local = 0;
    for (uint64_t i = 0; i < count; ++i) {
        REQUIRE(number(zip, at, 4) == 0x02014b50);
        const size_t name_size = number(zip, at + 28, 2), local = number(zip, at + 42, 4);
        CHECK(local == expected_local);
        REQUIRE(number(zip, local, 4) == 0x04034b50);
        for (size_t k = 0; k < 26; ++k) CHECK(zip.at(at + 6 + k) == zip.at(local + 4 + k));  // version … extra length
        CHECK(number(zip, local + 8, 2) == 0);                                               // stored
        const size_t size = number(zip, local + 22, 4), data = local + 30 + name_size;
        CHECK(number(zip, local + 18, 4) == size);
        CHECK(number(zip, local + 14, 4) == libdeflate_crc32(0, zip.data() + data, size));
        const auto text = [&](size_t from, size_t length) { return text_of(std::span(zip).subspan(from, length)); };
        CHECK(text(at + 46, name_size) == text(local + 30, name_size));
        list.push_back({text(local + 30, name_size), text(data, size), number(zip, local + 6, 2),
                        number(zip, local + 12, 2), number(zip, local + 10, 2)});
        expected_local = data + size;
        at += 46 + name_size;
    }
    CHECK(at == end);
    CHECK(expected_local == start);
    return list;
}

std::string numpy_file(const std::string& name) {
    return text_of(read_file(LOCKSTEP_TEST_FILES "/" + name));
}

}  // namespace

TEST_CASE("members are byte for byte what NumPy writes for the same arrays") {
    const std::vector<float> six{0, 1, 2, 3, 4, 5}, scalar{2.5};
    const std::vector<int64_t> whole{-1, 0, int64_t{1} << 40};
    std::vector<uint8_t> bytes(96);
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    const TempFolder folder;
    write_npz(folder / "f.npz", {{"fc1.weight", {2, 3}, "F32", std::as_bytes(std::span(six))},
                                 {"s", {}, "F32", std::as_bytes(std::span(scalar))},
                                 {"i", {3}, "I64", std::as_bytes(std::span(whole))},
                                 {"层", {2, 3, 4, 4}, "U8", std::as_bytes(std::span(bytes))}});
    const std::vector<Member> list = members(read_file(folder / "f.npz"));
    REQUIRE(list.size() == 4);
    CHECK(list[0].name == "fc1.weight.npy");
    CHECK(list[0].content == numpy_file("f4_2x3.npy"));
    CHECK(list[1].content == numpy_file("scalar_0d.npy"));
    CHECK(list[2].content == numpy_file("i8_1d.npy"));
    CHECK(list[3].name == "层.npy");
    CHECK(list[3].content == numpy_file("u1_4d.npy"));
    CHECK(list[0].flags == 0);
    CHECK(list[3].flags == 0x800);                                      // the name is UTF-8
    for (const Member& m : list) CHECK((m.date == 33 && m.time == 0));  // 1980-01-01
}

TEST_CASE("equal tensors give equal bytes, and other tensors others") {
    const std::vector<float> a{1, 2, 3}, b{1, 2, 4};
    const TempFolder folder;
    write_npz(folder / "1", {{"w", {3}, "F32", std::as_bytes(std::span(a))}});
    write_npz(folder / "2", {{"w", {3}, "F32", std::as_bytes(std::span(a))}});
    write_npz(folder / "3", {{"w", {3}, "F32", std::as_bytes(std::span(b))}});
    CHECK(read_file(folder / "1") == read_file(folder / "2"));
    CHECK(read_file(folder / "1") != read_file(folder / "3"));
}

TEST_CASE("no tensors and empty tensors are legal") {
    const TempFolder folder;
    write_npz(folder / "none", {});
    CHECK(read_file(folder / "none").size() == 22);
    write_npz(folder / "empty", {{"w", {0, 4}, "F32", {}}});
    const auto list = members(read_file(folder / "empty"));
    REQUIRE(list.size() == 1);
    CHECK(list[0].content.size() == 128);
}

TEST_CASE("more members than a plain zip can count give a zip64 directory") {
    const std::vector<float> one{1};
    std::vector<TensorView> many;
    for (int i = 0; i < 70'000; ++i) many.push_back({fmt::format("t{}", i), {1}, "F32", std::as_bytes(std::span(one))});
    const TempFolder folder;
    write_npz(folder / "f", many);
    const Bytes zip = read_file(folder / "f");
    const size_t end = zip.size() - 22, locator = end - 20, end64 = locator - 56;
    CHECK(number(zip, end + 10, 2) == 0xffff);
    CHECK(number(zip, locator, 4) == 0x07064b50);
    CHECK(number(zip, locator + 8, 8) == end64);
    REQUIRE(number(zip, end64, 4) == 0x06064b50);
    CHECK(number(zip, end64 + 32, 8) == 70'000);
    CHECK(number(zip, end64 + 40, 8) + number(zip, end64 + 48, 8) == end64);
}

TEST_CASE("a type that NumPy does not know, and a failed write, leave no file") {
    const std::vector<uint16_t> half{1, 2};
    const TempFolder folder;
    auto error = caught([&] { write_npz(folder / "f", {{"w", {2}, "BF16", std::as_bytes(std::span(half))}}); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kUsage);
    CHECK(error->says("export it as safetensors"));
    CHECK(folder.names().empty());
    error = caught([&] { write_npz(folder / "f", {{"w", {3}, "F16", std::as_bytes(std::span(half))}}); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
    error = caught([&] { write_npz(folder / "none/f", {}); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
    CHECK(folder.names().empty());
}

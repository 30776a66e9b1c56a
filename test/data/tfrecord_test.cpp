// TFRecord files of pictures: real ones, damaged ones, sets of files, packed ones, and the index that is kept.
#include "data/tfrecord.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/log.hpp"
#include "data/epoch_order.hpp"
#include "data/picture_fixture.hpp"
#include "data/tf_example.hpp"
#include "data/tfrecord_index.hpp"
#include "io/crc32c.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

const std::string kRecords = std::string(LOCKSTEP_TEST_FILES) + "/tfrecord/";

Config records(const TempFolder& folder, const std::vector<std::string>& paths,
               const std::vector<int64_t>& shape = {8, 8, 3}) {
    Config config = config_for("tfrecord", paths, shape);
    config.device.cache = folder / "cache";
    return config;
}

Caught refused(const Config& config) {
    const auto error = caught([&] { open_data(config); });
    REQUIRE(error);
    CHECK(error->one_line());
    CHECK(caught([&] { data_facts(config); })->message == error->message);
    return *error;
}

// The parts of a tf.Example and of a record, written by hand.
std::string field(int number, const std::string& bytes) {
    REQUIRE(bytes.size() < 128);
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string feature(const std::string& name, int kind, const std::string& list) {
    return field(1, field(1, name) + field(2, field(kind, list)));
}
std::string example(const std::string& features) {
    return field(1, features);
}
template <class T>
std::string little_endian(T value) {
    std::string bytes;
    for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
    return bytes;
}
std::string record(const std::string& data) {
    const std::string length = little_endian(uint64_t{data.size()});
    return length + little_endian(masked_crc32c(bytes_of(length))) + data +
           little_endian(masked_crc32c(bytes_of(data)));
}
std::string whole_file(const std::string& name) {
    return text_of(read_file(kRecords + name));
}

}  // namespace

TEST_CASE("records of TensorFlow's ImageNet layout: labels and flat grays as they are known") {
    const TempFolder folder;
    const Config config = records(folder, {kRecords + "train-00000-of-00008", kRecords + "train-00001-of-00008"});
    const auto data = open_data(config).train;
    REQUIRE(data->size() == 128);
    CHECK(data->classes() == 10);
    const int grays[] = {0, 25, 51, 76, 102, 128, 153, 179, 204, 230};
    for (int64_t i = 0; i < 128; ++i) {
        CHECK(data->label(i) == (i < 64 ? i % 10 : (i - 64 + 4) % 10));
        for (const int byte : bytes_of_sample(*data, i)) REQUIRE(std::abs(byte - grays[data->label(i)]) <= 2);
    }
    check_facts(config);
}

TEST_CASE("pictures of every format in one file, and features by other names") {
    const TempFolder folder;
    const auto mixed = open_data(records(folder, {kRecords + "tf221_mixed_formats.tfrecord"})).train;
    REQUIRE(mixed->size() == 6);
    for (int64_t i = 0; i < 6; ++i) {
        CHECK(mixed->label(i) == i + 1);
        pixels_of(*mixed, i);
    }
    Config lite = records(folder, {kRecords + "tfrecord_lite_images.tfrecord"});
    CHECK(refused(lite).says(
        "record 0 at byte 0: no feature image/class/label; it has depth, height, image_raw, label, width"));
    lite.data.image_feature = "image_raw";
    lite.data.label_feature = "label";
    const auto data = open_data(lite).train;
    CHECK(data->size() == 2);
    std::vector<float> gray = pixels_of(*data, 1);
    for (size_t i = 0; i < gray.size(); i += 3) CHECK(gray[i] == gray[i + 2]);
    lite.data.image_feature = "label";
    CHECK(refused(lite).says("feature label holds integers, where byte strings are needed"));
}

TEST_CASE("damaged files are refused with file, record and offset") {
    const TempFolder folder;
    const auto error_of = [&](const std::string& name) {
        const Caught error = refused(records(folder, {kRecords + name}));
        CHECK(error.kind == ErrorKind::kData);
        CHECK(error.says(kRecords + name));
        return error;
    };
    CHECK(error_of("bad_data_crc.tfrecord").says("record 1 at byte 899: the checksum of its data (from byte 911 on)"));
    CHECK(error_of("bad_length_crc.tfrecord").says("record 1 at byte 899: the checksum of its length"));
    CHECK(error_of("truncated_3_bytes.tfrecord").says("truncated: record 2 starts at byte 1798"));
    CHECK(error_of("tf221_missing_label.tfrecord").says("record 1 at byte "));
    CHECK(error_of("tf221_missing_label.tfrecord").says("no feature image/class/label"));
    const std::string text = folder.write("text", "this is no TFRecord file, but long enough");
    CHECK(refused(records(folder, {text})).says("this is no TFRecord file"));
    const std::string empty = folder.write("empty", "");
    CHECK(refused(records(folder, {empty})).says(empty + ": empty"));
    const std::string cut = folder.write("cut", whole_file("tf221_three.tfrecord").substr(0, 905));
    CHECK(refused(records(folder, {cut})).says("truncated: record 1 starts at byte 899"));
}

TEST_CASE("a file that is damaged after it was indexed is found out when the record is read") {
    const TempFolder folder;
    const std::string path = folder.write("three", whole_file("tf221_three.tfrecord"));
    const auto data = open_data(records(folder, {path})).train;
    std::string spoiled = whole_file("tf221_three.tfrecord");
    spoiled[1500] = static_cast<char>(spoiled[1500] ^ 4);
    folder.write("three", spoiled);
    pixels_of(*data, 0);
    std::vector<float> pixels(192);
    const auto error = caught([&] { data->read(1, pixels); });
    CHECK((error && error->kind == ErrorKind::kData && error->says("record 1 at byte 899")));
}

TEST_CASE("a picture that is damaged, or missing, is refused with its record; labels out of range, too") {
    const TempFolder folder;
    const auto one = [&](const std::string& name, const std::string& features) {
        return records(folder, {folder.write(name, record(example(features)))});
    };
    const auto picture = open_data(one("a", feature("image/encoded", 1, field(1, "no picture")) +
                                                feature("image/class/label", 3, "\x08\x07")))
                             .train;
    CHECK(picture->label(0) == 7);
    std::vector<float> pixels(192);
    const auto error = caught([&] { picture->read(0, pixels); });
    CHECK((error->says(folder / "a, record 0 at byte 0, image/encoded: neither JPEG") && error->one_line()));
    const std::string image = feature("image/encoded", 1, field(1, "x"));
    CHECK(refused(one("b", image + feature("image/class/label", 3, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")))
              .says("label -1 of feature image/class/label"));
    CHECK(refused(one("c", image + feature("image/class/label", 3, "\x0a\x02\x01\x02"))).says("holds 2 values"));
    CHECK(refused(one("d", image + feature("image/class/label", 2, "\x0a\x04\x01\x02\x03\x04"))).says("holds floats"));
    CHECK(refused(one("e", feature("image/class/label", 3, "\x08\x07"))).says("no feature image/encoded"));
    CHECK(refused(one("n", feature("a\n\x1b[1mb", 3, "\x08\x07"))).says("it has a  [1mb"));
    CHECK(refused(records(folder, {folder.write("f", record("\x0a\x7f"))})).says("no tf.Example: at byte 2"));
}

TEST_CASE("tf.Example: packed and plain integers, unknown fields, and of equal names the last") {
    const std::string text =
        std::string("\x18\x05") + example(feature("a", 3, "\x08\x03") + feature("b", 3, "\x0a\x01\x2a") +
                                          feature("a", 3, "\x08\x04") + feature("none", 1, ""));
    const Bytes bytes = bytes_of(text);
    const TfExample parsed(bytes);
    CHECK(parsed.features().size() == 4);
    CHECK(parsed.integer_of("a") == 4);
    CHECK(parsed.integer_of("b") == 42);
    CHECK(caught([&] { parsed.bytes_of("none"); })->says("holds 0 values"));
    for (size_t cut = 1; cut < bytes.size();
         ++cut) {  // wherever it is cut, it is refused or shorter, and nothing is read beyond
        const Bytes part(bytes.begin(), bytes.begin() + static_cast<long>(cut));
        const auto error = caught([&] { TfExample again(part); });
        CHECK((!error || error->kind == ErrorKind::kData));
    }
}

TEST_CASE("of a set of numbered files none may be missing, unless they are listed one by one") {
    const TempFolder folder;
    for (int i : {0, 1, 3}) folder.write(fmt::format("train-0000{}-of-00004", i), whole_file("tf221_three.tfrecord"));
    const Caught glob = refused(records(folder, {folder / "train-*"}));
    CHECK(glob.kind == ErrorKind::kData);
    CHECK(glob.says("1 of 4 files are missing: " + folder.path() + "/train-00002-of-00004"));
    CHECK(refused(records(folder, {kRecords + "train-*"})).says("6 of 8 files are missing"));
    folder.write("huge-00007-of-999999999", whole_file("tf221_three.tfrecord"));  // told at once
    CHECK(refused(records(folder, {folder / "huge-*"})).says("999999998 of 999999999 files are missing: "));
    const std::vector<std::string> listed{folder / "train-00003-of-00004", folder / "train-00000-of-00004"};
    CHECK(open_data(records(folder, listed)).train->size() == 6);

    const TempFolder whole;
    for (int i : {0, 1}) whole.write(fmt::format("train-0000{}-of-00002", i), whole_file("tf221_three.tfrecord"));
    CHECK(open_data(records(folder, {whole.path()})).train->size() == 6);
    whole.write("validation-00000-of-00001", whole_file("tf221_three.tfrecord"));
    const Caught both = refused(records(folder, {whole.path()}));
    CHECK(both.says("holds several sets of files, train and validation"));
    Config config = records(folder, {whole / "train-*"});
    config.data.test.paths = {whole / "validation-*"};
    const DataSplits splits = open_data(config);
    CHECK((splits.train->size() == 6 && splits.test->size() == 3));
}

TEST_CASE("packed files are unpacked once, and are the same data; the cache may be lost, spoiled or forbidden") {
    const TempFolder folder;
    const std::string plain = folder.write("three", whole_file("tf221_three.tfrecord"));
    const std::string packed = folder.write("three.gz", gzip(read_file(kRecords + "tf221_three.tfrecord")));
    const auto expected = open_data(records(folder, {plain})).train;
    const auto check_same = [&](const Config& config) {
        const auto data = open_data(config).train;
        REQUIRE(data->size() == 3);
        CHECK(data->fingerprint() == expected->fingerprint());
        for (int64_t i = 0; i < 3; ++i) CHECK(pixels_of(*data, i) == pixels_of(*expected, i));
    };
    check_same(records(folder, {packed}));
    const size_t kept = TempFolder::names_in(folder / "cache").size();
    check_same(records(folder, {packed}));
    check_same(records(folder, {plain}));
    CHECK(TempFolder::names_in(folder / "cache").size() == kept);

    set_log(LogLevel::kQuiet, false);
    for (const std::string& name : TempFolder::names_in(folder / "cache")) {
        if (name.ends_with(".index")) folder.write("cache/" + name, "spoiled");
    }
    check_same(records(folder, {plain}));
    Config forbidden = records(folder, {plain});
    forbidden.device.cache = folder / "three/cache";  // a file is no folder
    check_same(forbidden);
}

TEST_CASE("an index belongs to a file's contents and to the features that it was made for") {
    const TempFolder folder;
    const std::string lite = folder.write("lite", whole_file("tfrecord_lite_images.tfrecord"));
    Config config = records(folder, {lite});
    config.data.image_feature = "image_raw";
    config.data.label_feature = "label";
    const int32_t label = open_data(config).train->label(0);
    config.data.label_feature = "height";
    CHECK(open_data(config).train->label(0) != label);
    folder.write("lite", whole_file("tf221_three.tfrecord"));
    CHECK(open_data(records(folder, {lite})).train->size() == 3);
}

TEST_CASE("an index does not outlive a change in the middle of a file whose size and time stay") {
    const TempFolder folder;
    const std::string first = whole_file("train-00000-of-00008"), second = whole_file("train-00001-of-00008");
    std::string ends;  // more than the first and the last MiB
    while (ends.size() <= size_t{1} << 20) ends += first;
    const std::string path = folder.write("records", ends + first + second + ends);
    const auto time = fs::last_write_time(path);
    const auto labels = [&] {
        const DataSplits data = open_data(records(folder, {path}));
        std::vector<int32_t> all;
        for (int64_t i = 0; i < data.train->size(); ++i) all.push_back(data.train->label(i));
        return all;
    };
    const auto before = labels();
    folder.write("records", ends + second + first + ends);
    fs::last_write_time(path, time);
    const auto after = labels();
    CHECK(after.size() == before.size());
    CHECK(after != before);
}

TEST_CASE("with blocks shuffled each block is one stretch of a file, read once from end to end") {
    const TempFolder folder;
    const DataFile file = std::move(open_data_files({kRecords + "train-00000-of-00008"}, folder / "cache").front());
    const auto entries = index_of(file, true, {"image/encoded", "image/class/label"}, folder / "cache");
    const auto size = static_cast<int64_t>(entries.size());
    constexpr int64_t kBlock = 16;
    // How far apart the records of a block's positions lie, against the bytes of so many records behind one another.
    const auto stretches = [&](Shuffle shuffle) {
        const EpochOrder order(3, 0, size, shuffle, kBlock);
        int whole = 0;
        for (int64_t first = 0; first < size; first += kBlock) {
            int64_t begin = INT64_MAX, end = 0, bytes = 0;
            for (int64_t p = first; p < first + kBlock; ++p) {
                const RecordPlace place = entries[static_cast<size_t>(order.index(p))].place();
                begin = std::min(begin, place.offset);
                end = std::max(end, end_of(place));
                bytes += end_of(place) - place.offset;
            }
            whole += end - begin == bytes;
        }
        return whole;
    };
    REQUIRE(size == 64);
    CHECK(stretches(Shuffle::kBlock) == 4);
    CHECK(stretches(Shuffle::kFull) == 0);  // the twin: otherwise the count says nothing
}

// Tables as libsvm files: real ones, packed and plain, from memory and from the disk, and what is refused with its
// line.
#include "data/libsvm.hpp"

#include <catch2/catch.hpp>

#include "core/log.hpp"
#include "data/table_config.hpp"
#include "io/files.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<int64_t> label_counts(const Dataset& data) {
    std::vector<int64_t> counts(static_cast<size_t>(data.classes()));
    for (int64_t i = 0; i < data.size(); ++i) ++counts[static_cast<size_t>(data.label(i))];
    return counts;
}

int64_t values_not_zero(const Dataset& data) {
    int64_t count = 0;
    for (int64_t i = 0; i < data.size(); ++i) {
        for (const float value : sample(data, i)) count += value != 0.0F;
    }
    return count;
}

void refused(const std::string& train, const std::string& test, const std::string& words) {
    INFO(train);
    const TempFolder folder;
    const std::string path = folder.write("train", train);
    const auto error =
        caught([&] { open_libsvm(table_config("libsvm", path, test.empty() ? "" : folder.write("test", test))); });
    REQUIRE(error);
    INFO(error->message);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->says(words));
}

}  // namespace

TEST_CASE("heart_scale has 270 rows of 13 values and two labels") {
    const DataSplits data = open_libsvm(table_config("libsvm", kFiles + "/heart_scale"));
    CHECK(data.train->size() == 270);
    CHECK(data.train->shape() == SampleShape{1, 1, 13});
    CHECK(label_counts(*data.train) == std::vector<int64_t>{150, 120});  // -1, +1
    CHECK(values_not_zero(*data.train) == 3378);
    CHECK(sample(*data.train, 0)[0] == 0.708333F);
    CHECK(sample(*data.train, 0)[10] == 0.0F);  // index 11 is not written
}

TEST_CASE("a packed file is the same from memory and from the disk") {
    const TempFolder folder;
    Config config = table_config("libsvm", kFiles + "/agaricus.txt.test.gz", kFiles + "/agaricus.txt.test.gz");
    config.device.cache = folder.path();
    const DataSplits held = open_libsvm(config);
    CHECK(held.train->size() == 1611);
    CHECK(held.train->shape().channels == 126);
    CHECK(label_counts(*held.train) == std::vector<int64_t>{835, 776});
    CHECK(values_not_zero(*held.train) == 35442);
    const DataSplits made = open_libsvm(config, 0);
    CHECK(contents(*held.train) == contents(*made.train));
    CHECK(contents(*held.test) == contents(*made.test));
    REQUIRE(folder.names().size() == 2);  // the copy, and its sum beside it

    // A copy that was changed since, at the same size or cut, is made anew.
    set_log(LogLevel::kQuiet, false);
    for (const std::string& name : folder.names()) {
        if (name.ends_with(".sum")) continue;
        std::string text = text_of(read_file(folder / name));
        std::swap(text[0], text[text.size() / 2 + 1]);
        for (const std::string& spoiled : {text, text.substr(0, 1000), std::string()}) {
            folder.write(name, spoiled);
            CHECK(contents(*open_libsvm(config, 0).train) == contents(*held.train));
        }
    }
}

TEST_CASE("comments, blanks and rows of zeros") {
    const DataSplits data = open_libsvm(table_config("libsvm", kFiles + "/sklearn_svmlight_classification.txt"));
    CHECK(data.train->size() == 6);
    CHECK(data.train->shape().channels == 21);
    CHECK(label_counts(*data.train) == std::vector<int64_t>{2, 2, 1, 1});
    CHECK(sample(*data.train, 0)[2] == 2.5F);
    CHECK(sample(*data.train, 0)[10] == -5.2F);
    CHECK(sample(*data.train, 3)[1] == 1.234567890123456e10F);
    CHECK(sample(*data.train, 4) == std::vector<float>(21, 0.0F));
}

TEST_CASE("what is no such file is refused with its line") {
    const auto refused_file = [](const char* name, const char* words) {
        const auto error = caught([&] { open_libsvm(table_config("libsvm", kFiles + "/" + name)); });
        REQUIRE(error);
        INFO(error->message);
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->says(words));
    };
    refused_file("sklearn_svmlight_invalid.txt", "sklearn_svmlight_invalid.txt:1: \"python\": a number is expected");
    refused_file("sklearn_svmlight_invalid_order.txt", ":1: index 2 follows index 5; indices must rise");
    refused_file("sklearn_svmlight_multilabel.txt", ":2: \"1,0\": several labels of one row");
    refused("1 1:1\n-1 2:x\n", "", "train:2: \"2:x\": the value is no number");
    refused("1 1:1\n-1 2\n", "", "train:2: \"2\": index:value is expected");
    refused("1 1:1 1:2\n", "", "index 1 follows index 1");
    refused("1 qid:3 1:1\n", "", "ranking data");
    refused("1 1:1\n1 2:1\n", "", "one label alone (1)");
    refused("# nothing\n\n", "", "no rows");
    refused("1 1:1\n2 2:1\n", "1 1:1\n\n2 3:1\n", "test:3: index 3 is out of range: from 1 to 2 in the training data");
    refused("1 1:1\n2 2:1\n", "3 1:1\n", "test:1: label 3 is none of the 2 of the training data: 1, 2");
}

TEST_CASE("the width can be set, indices may start at 0, and labels may be numbers") {
    const TempFolder folder;
    Config config = table_config("libsvm", folder.write("a", std::string("1 1:1\n2 2:1\n")),
                                 folder.write("b", std::string("1 4:1\n")));
    config.data.features = 5;
    CHECK(open_libsvm(config).train->shape().channels == 5);
    config.data.features = 3;
    CHECK(caught([&] { open_libsvm(config); })->says("b:1: index 4 is out of range: from 1 to 3"));

    const auto zero = open_libsvm(table_config("libsvm", folder.write("c", std::string("1 0:1\n2 2:1\n"))));
    CHECK(zero.train->shape().channels == 3);
    CHECK(sample(*zero.train, 0) == std::vector<float>{1, 0, 0});

    const auto numbers = open_libsvm(table_config("libsvm", folder.write("d", std::string("1.5 1:1\n2 2:1\n"))));
    CHECK(numbers.train->classes() == 0);
    CHECK(std::bit_cast<float>(numbers.train->label(0)) == 1.5F);
}

TEST_CASE("a byte order mark is no part of the first label") {
    const TempFolder folder;
    const std::string rows = "1 1:2 3:4\n0 2:1\n";
    const auto plain = contents(*open_libsvm(table_config("libsvm", folder.write("plain", rows))).train);
    const std::string marked = folder.write("marked", "\xef\xbb\xbf" + rows);
    for (const int64_t memory : {kTableMemory, int64_t{0}}) {
        CHECK(contents(*open_libsvm(table_config("libsvm", marked), memory).train) == plain);
    }
}

TEST_CASE("what a split would take in memory is never less than nothing") {
    CHECK(held_bytes(3, 2) == 3 * (2 * 4 + 4));
    CHECK(held_bytes(int64_t{1} << 40, int64_t{1} << 30) == INT64_MAX);
}

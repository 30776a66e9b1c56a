// Folders of pictures: the order of classes and files, every kind of picture, and what is refused.
#include "data/image_folder.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "core/log.hpp"
#include "data/picture_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

const std::string kCifar = kPictures + "cifar10_png";

/// Copies a file to folder/to, making folders on the way.
std::string put(const TempFolder& folder, const std::string& from, const std::string& to) {
    fs::create_directories(fs::path(folder / to).parent_path());
    fs::copy_file(from, folder / to);
    return folder / to;
}

}  // namespace

TEST_CASE("PNG pictures are the records of CIFAR and of Fashion-MNIST, pixel by pixel") {
    const auto records = open_data(config_for("cifar", {kPictures + "cifar10_test_first20.bin"})).train;
    const auto pictures = open_data(config_for("image_folder", {kCifar})).train;
    // By class, in each by name: eight of the ten classes occur.
    const std::vector<std::vector<int64_t>> by_class{{3, 10},       {6, 9},   {0, 8},         {12, 16},
                                                     {4, 5, 7, 19}, {13, 17}, {1, 2, 15, 18}, {11, 14}};
    REQUIRE(pictures->size() == 20);
    CHECK(pictures->shape() == SampleShape{32, 32, 3});
    CHECK(pictures->classes() == 8);
    int64_t at = 0;
    for (size_t label = 0; label < by_class.size(); ++label) {
        for (const int64_t record : by_class[label]) {
            CHECK(pictures->label(at) == static_cast<int32_t>(label));
            CHECK(pixels_of(*pictures, at) == pixels_of(*records, record));
            ++at;
        }
    }
    check_facts(config_for("image_folder", {kCifar}));

    Config fashion;
    fashion.data.train.images = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";
    fashion.data.train.labels = "/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz";
    const auto idx = open_data(fashion).train;
    const auto gray = open_data(config_for("image_folder", {kPictures + "fashion_png"}, {28, 28, 1})).train;
    at = 0;
    for (const std::string digit : {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}) {
        if (!fs::exists(kPictures + "fashion_png/" + digit)) continue;
        std::vector<std::string> names = TempFolder::names_in(kPictures + "fashion_png/" + digit);
        std::sort(names.begin(), names.end());
        for (const std::string& name : names) {
            CHECK(pixels_of(*gray, at) == pixels_of(*idx, std::stoi(name)));
            ++at;
        }
    }
    CHECK(at == 20);
}

TEST_CASE("classes and files go in byte order of their names, whatever they were made in; folders are joined") {
    const TempFolder folder;
    const std::string source = kCifar + "/3/00.png";
    for (const char* name : {"b/z", "B/2", "9/a", "10/a", "é/a", "b/Y", "b/deep/er", "B/10", "_/a"}) {
        put(folder, source, std::string("one/") + name + ".png");
    }
    put(folder, source, "two/B/0.PNG");
    put(folder, source, "two/c/0.png");
    fs::create_directories(folder / "one/.hidden");
    const Config config = config_for("image_folder", {folder / "one", folder / "two"});
    const auto data = open_data(config).train;
    // 10, 9, B (10, 2, then of two: 0), _, b (Y, deep/er, z), c, é
    CHECK(data->classes() == 7);
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < data->size(); ++i) labels.push_back(data->label(i));
    CHECK(labels == std::vector<int32_t>{0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6});
    fs::remove(folder / "one/b/Y.png");
    put(folder, kCifar + "/8/01.png", "one/b/Y.png");
    CHECK(pixels_of(*data, 6) == pixels_of(*open_data(config_for("image_folder", {kCifar})).train, 14));
}

TEST_CASE("what is hidden is no picture, nor is what lies in a hidden folder") {
    const TempFolder folder;
    for (const char* place : {"a/1.png", "b/deep/2.png", "a/._1.png", "a/.ipynb_checkpoints/1-checkpoint.png",
                              "b/deep/.thumbnails/deeper/2.png", ".trash/c/3.png"}) {
        put(folder, kCifar + "/3/00.png", place);
    }
    const auto pictures = open_data(config_for("image_folder", {folder.path()})).train;
    CHECK(pictures->size() == 2);
    CHECK(pictures->classes() == 2);
}

TEST_CASE("every whole picture is read at data.shape; damaged ones are refused by name when they are read") {
    const TempFolder folder;
    const std::map<std::string, bool> files{{"jpeg/go_video-005.gray.jpeg", true},
                                            {"jpeg/tv_cmyk_pytorch.jpg", true},
                                            {"jpeg/go_video-001.progressive.jpeg", true},
                                            {"jpeg/made_png_named.JPEG", true},
                                            {"jpeg/made_empty.jpg", false},
                                            {"jpeg/made_testorig_minus54.jpg", false},
                                            {"png/go_basn3p04.png", true},
                                            {"png/go_invalid-crc32.png", false},
                                            {"png/go_basn6a16.png", true},
                                            {"png/go_invalid-zlib.png", false}};
    for (const auto& [name, whole] : files) put(folder, kOddPictures + name, "set/" + name);
    put(folder, kCifar + "/3/00.png", "set/other/0.png");
    const Config config = config_for("image_folder", {folder / "set"}, {24, 20, 3});
    const auto data = open_data(config).train;
    int64_t index = 0;
    for (const auto& [name, whole] : files) {
        const bool png = name.starts_with("png/");
        const int64_t at = index++ + (png ? 1 : 0);  // the class "other" lies between
        INFO(name);
        CHECK(data->label(at) == (png ? 2 : 0));
        std::vector<float> pixels(24 * 20 * 3);
        const auto error = caught([&] { data->read(at, pixels); });
        REQUIRE(error.has_value() == !whole);
        if (error) CHECK((error->kind == ErrorKind::kData && error->says(folder / "set/" + name) && error->one_line()));
        if (name.find("gray") != std::string::npos) {
            for (size_t i = 0; i < pixels.size(); i += 3)
                REQUIRE((pixels[i] == pixels[i + 1] && pixels[i] == pixels[i + 2]));
        }
    }
}

TEST_CASE("without data.shape pictures of several sizes are refused, naming two and what to set") {
    const TempFolder folder;
    const std::string a = put(folder, kCifar + "/3/00.png", "set/a/0.png");
    const std::string b = put(folder, kOddPictures + "jpeg/pillow_hopper.jpg", "set/b/0.jpg");
    const Config config = config_for("image_folder", {folder / "set"});
    for (const auto& error : {caught([&] { open_data(config); }), caught([&] { data_facts(config); })}) {
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kUsage);
        CHECK(error->says(a + " has 32 x 32"));
        CHECK(error->says(b + " 128 x 128"));
        CHECK(error->says("set data.shape"));
        CHECK(error->one_line());
    }
    CHECK(open_data(config_for("image_folder", {folder / "set"}, {16, 16, 3})).train->size() == 2);
}

TEST_CASE("test classes take the training classes' numbers, and must be among them") {
    const TempFolder folder;
    for (const char* name : {"train/a/0.png", "train/b/0.png", "train/c/0.png", "test/c/0.png", "bad/d/0.png"}) {
        put(folder, kCifar + "/3/00.png", name);
    }
    Config config = config_for("image_folder", {folder / "train"});
    config.data.test.paths = {folder / "test"};
    const DataSplits splits = open_data(config);
    CHECK(splits.test->label(0) == 2);
    CHECK(splits.test->classes() == 3);
    check_facts(config);
    config.data.test.paths = {folder / "bad"};
    const auto error = caught([&] { open_data(config); });
    CHECK((error->kind == ErrorKind::kData && error->says(folder / "bad/d")));
}

TEST_CASE("the fingerprint is of names, sizes and contents, not of where they lie") {
    const TempFolder folder;
    const auto make = [&](const std::string& root, const std::string& name, const std::string& from) {
        put(folder, kCifar + "/3/00.png", root + "/a/0.png");
        put(folder, from, root + "/b/" + name);
        return open_data(config_for("image_folder", {folder / root})).train->fingerprint();
    };
    const std::string first = make("one", "1.png", kCifar + "/8/01.png");
    CHECK(make("two", "1.png", kCifar + "/8/01.png") == first);
    CHECK(make("three", "2.png", kCifar + "/8/01.png") != first);
    CHECK(make("four", "1.png", kCifar + "/8/02.png") != first);
    CHECK(first.find("libjpeg") != std::string::npos);
}

TEST_CASE("folders without classes, classes without pictures and missing folders are refused by name") {
    const TempFolder folder;
    fs::create_directories(folder / "empty/a");
    fs::create_directories(folder / "flat");
    put(folder, kCifar + "/3/00.png", "flat/0.png");
    put(folder, kCifar + "/3/00.png", "links/a/0.png");
    fs::create_symlink("nowhere.png", folder / "links/a/1.png");
    put(folder, kCifar + "/3/00.png", "class/a/0.png");
    fs::create_symlink("nowhere", folder / "class/b");
    put(folder, kCifar + "/3/00.png", "loop/a/0.png");
    fs::create_symlink("self", folder / "loop/self");
    put(folder, kCifar + "/3/00.png", "around/a/0.png");
    fs::create_symlink("../../around", folder / "around/a/up");
    put(folder, kCifar + "/3/00.png", "pipes/a/0.png");
    REQUIRE(::mkfifo((folder / "pipes/a/1.png").c_str(), 0600) == 0);
    const std::map<std::string, std::string> says{{"empty", "empty/a: a class without a picture"},
                                                  {"links", "links/a/1.png: a link to nothing"},
                                                  {"class", "class/b: a link to nothing"},
                                                  {"loop", "loop/self: a link that leads to itself"},
                                                  {"around", "around/a/up: a link to a folder that it lies in"},
                                                  {"pipes", "pipes/a/1.png: named as a picture, but it is no file"},
                                                  {"flat", "flat holds no folder"},
                                                  {"flat/0.png", "flat/0.png is no folder"},
                                                  {"missing", "missing is no folder"}};
    for (const auto& [name, text] : says) {
        const std::string path = folder / name;  // clang 14: a lambda captures no structured binding
        const auto error = caught([&] { open_data(config_for("image_folder", {path})); });
        INFO(name);
        REQUIRE(error);
        CHECK((error->kind == ErrorKind::kData && error->says(text) && error->one_line()));
    }
}

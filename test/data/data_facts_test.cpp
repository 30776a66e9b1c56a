// Facts told from headers are those of the data set that the trainer would open, and what is wrong is told alike.
#include "data/data_facts.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/dataset.hpp"
#include "io/files.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* kFashion = "/usr/share/datasets/fashion-mnist/";

Bytes idx(std::initializer_list<int> header, size_t elements, int value) {
    Bytes bytes;
    for (const int b : header) bytes.push_back(static_cast<std::byte>(b));
    for (size_t i = 0; i < elements; ++i) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

// Five images of 2 x 3 with labels up to 3, and two to test with.
const Bytes kImages = idx({0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3}, 30, 7);
const Bytes kLabels = idx({0, 0, 8, 1, 0, 0, 0, 5, 0, 1, 2}, 2, 3);
const Bytes kTestImages = idx({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3}, 12, 7);
const Bytes kTestLabels = idx({0, 0, 8, 1, 0, 0, 0, 2}, 2, 1);

Config config_of(const TempFolder& folder, const Bytes& images, const Bytes& labels) {
    Config config;
    config.data.train = {folder.write("images", images), folder.write("labels", labels), {}};
    return config;
}

void check_as_opened(const Config& config) {
    const DataFacts facts = data_facts(config);
    const DataSplits opened = open_data(config);
    CHECK(facts.samples == opened.train->size());
    CHECK(facts.test_samples == (opened.test ? opened.test->size() : 0));
    CHECK(facts.shape == opened.train->shape());
    CHECK(facts.classes == opened.train->classes());
}

template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("facts of idx files, packed or not, are those of the opened data") {
    const TempFolder folder;
    for (const bool packed : {false, true}) {
        Config config = config_of(folder, packed ? gzip(kImages) : kImages, packed ? gzip(kLabels) : kLabels);
        check_as_opened(config);
        config.data.test = {folder.write("test-images", packed ? gzip(kTestImages) : kTestImages),
                            folder.write("test-labels", packed ? gzip(kTestLabels) : kTestLabels),
                            {}};
        check_as_opened(config);
        const DataFacts facts = data_facts(config);
        CHECK(facts.samples == 5);
        CHECK(facts.classes == 4);
        CHECK(facts.memory_bytes == (16 + 30 + 5 * 4) + (16 + 12 + 2 * 4));
    }
}

TEST_CASE("facts of synthetic data are those of the opened data") {
    Config config;
    config.data.format = "synthetic";
    check_as_opened(config);
    config.data.test_samples = 0;
    config.data.shape = {3, 5, 2};
    config.data.classes = 7;
    check_as_opened(config);
    CHECK(data_facts(config).memory_bytes == config.data.samples * (2 * 30 + 4));
    config.data.samples = int64_t{1} << 40;  // made when read, so that nothing is kept
    CHECK(data_facts(config).memory_bytes == 0);
}

TEST_CASE("facts of Fashion-MNIST", "[fashion]") {
    if (!std::filesystem::exists(kFashion)) return;
    const std::string folder = kFashion;
    Config config;
    config.data.train = {folder + "train-images-idx3-ubyte.gz", folder + "train-labels-idx1-ubyte.gz", {}};
    config.data.test = {folder + "t10k-images-idx3-ubyte.gz", folder + "t10k-labels-idx1-ubyte.gz", {}};
    const DataFacts facts = data_facts(config);
    CHECK(facts.samples == 60000);
    CHECK(facts.test_samples == 10000);
    CHECK(facts.shape == SampleShape{28, 28, 1});
    CHECK(facts.classes == 10);
}

TEST_CASE("what is wrong with headers and labels is told as when the data are opened") {
    const TempFolder folder;
    Config config = config_of(folder, kImages, kLabels);
    const auto same_words = [](const Config& c) {
        const std::string words = message_of([&] { data_facts(c); });
        CHECK(words != "no error");
        CHECK(words == message_of([&] { open_data(c); }));
    };
    Config wrong = config;
    wrong.data.train.images = folder.write("magic", idx({0, 0, 7, 3, 0, 0, 0, 5}, 30, 7));
    same_words(wrong);
    wrong.data.train.images = folder.path() + "/missing";
    same_words(wrong);
    wrong = config;
    wrong.data.train.labels = folder.write("fewer", kTestLabels);
    same_words(wrong);
    wrong = config;
    wrong.data.shape = {3, 2, 1};
    same_words(wrong);
    wrong = config;
    wrong.data.train.labels.clear();
    same_words(wrong);
    wrong.data.train = {};
    same_words(wrong);
    wrong = config;
    wrong.data.format = "npz";
    same_words(wrong);
    wrong = config;
    wrong.data.train.images = folder.path();
    CHECK(message_of([&] { data_facts(wrong); }) == "cannot read " + folder.path() + ": Is a directory");
    Bytes cut = gzip(kImages);
    cut[12] ^= std::byte{0xff};
    wrong.data.train.images = folder.write("damaged", cut);
    CHECK(message_of([&] { data_facts(wrong); }).find("damaged") != std::string::npos);
}

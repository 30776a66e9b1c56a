// Damaged samples are named: all at once before a training, and by file, sample and position when one is met.
#include "data/unreadable.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "data/loader.hpp"
#include "data/picture_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

/// Twenty pictures, of which those numbered are cut off.
std::string pictures(const TempFolder& folder, const std::vector<std::string>& cut) {
    const std::string root = folder / "train";
    fs::copy(kPictures + "cifar10_png", root, fs::copy_options::recursive);
    for (const std::string& name : cut) fs::resize_file(root + "/" + name, 1000);
    return root;
}

std::string met_by_loader(const Dataset& data, int threads) {
    const ShardPlan plan(data.size(), 4, 2, Layout::kBatch, LastBatch::kKeep);
    LoaderOptions options;
    options.seed = 1;
    options.local = {0, 2};
    options.threads = threads;
    options.first_update = 1;
    options.last_update = plan.steps_per_epoch();
    Loader loader(data, plan, options);
    const auto error = caught([&] {
        for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) loader.next([] {});
    });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->one_line());
    return error->message;
}

}  // namespace

TEST_CASE("every damaged picture is named, in the order of the data, at any number of threads") {
    const TempFolder folder;
    const std::string root = pictures(folder, {"8/02.png", "3/00.png", "6/05.png"});
    const auto data = open_data(config_for("image_folder", {root}, {8, 8, 3})).train;
    for (const int threads : {1, 2, 3, 40}) {
        const std::vector<std::string> faults = unreadable_samples(*data, threads);
        REQUIRE(faults.size() == 3);
        CHECK(faults[0].starts_with(root + "/3/00.png: truncated"));
        CHECK(faults[1].starts_with(root + "/6/05.png: truncated"));
        CHECK(faults[2].starts_with(root + "/8/02.png: truncated"));
        CHECK(faults[2].find("replace or remove this picture") != std::string::npos);
    }
}

TEST_CASE("where nothing is damaged nothing is named") {
    CHECK(unreadable_samples(*open_data(config_for("image_folder", {kPictures + "cifar10_png"})).train, 2).empty());
}

TEST_CASE("a training that meets a damaged picture names the file, the sample, its position, and what to do") {
    const TempFolder folder;
    const std::string root = pictures(folder, {"6/05.png"});
    const auto data = open_data(config_for("image_folder", {root}, {8, 8, 3})).train;
    int64_t sample = 0;
    std::vector<float> pixels(8 * 8 * 3);
    while (!caught([&] { data->read(sample, pixels); })) ++sample;
    const EpochOrder order(1, 0, data->size(), Shuffle::kFull, 1);
    int64_t position = 0;
    while (order.index(position) != sample) ++position;
    for (const int threads : {0, 3}) {
        const std::string message = met_by_loader(*data, threads);
        CHECK(message.starts_with(root + "/6/05.png: truncated"));
        CHECK(message.find("; replace or remove this picture") != std::string::npos);
        CHECK(message.find(fmt::format("(sample {}, at position {} of epoch 0)", sample, position)) !=
              std::string::npos);
        CHECK(message.ends_with("; lockstep inspect --deep names all that are damaged"));
    }
}

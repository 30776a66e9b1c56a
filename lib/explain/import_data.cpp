// The data sets and networks that other trainers know by name.
#include <filesystem>

#include "core/error.hpp"
#include "explain/config_import.hpp"

namespace lockstep {
namespace {

constexpr int64_t kCifar = 50'000, kCifarTest = 10'000;

std::string below(const std::string& folder, std::string_view rest) {
    return folder.ends_with('/') ? fmt::format("{}{}", folder, rest) : fmt::format("{}/{}", folder, rest);
}

void set_synthetic(int64_t samples, int64_t test, int64_t classes, Imported& config) {
    config.set_text("data.format", "synthetic", "no folder is named: made-up data, there too");
    config.set("data.samples", samples, "as many as the real data have");
    config.set("data.test_samples", test, "as many as the real data have");
    config.set("data.classes", classes, "its labels count from 1: one more than there are");
}

}  // namespace

int64_t import_known_data(std::string_view name, const std::string& folder, int64_t side, Imported& config) {
    const std::string shape = fmt::format("[{}, {}, 3]", side, side);
    if (name == "imagenet") {
        if (folder.empty()) {
            set_synthetic(kImageNetSamples, kImageNetTestSamples, 1001, config);
            config.set("data.shape", shape, "the network's pictures");
            return kImageNetSamples;
        }
        config.set_text("data.format", "tfrecord", "its ImageNet files");
        config.set_text("data.train", below(folder, "train-*"), "--data_dir");
        config.set_text("data.test", below(folder, "validation-*"), "--data_dir: seen whole, each sample once");
        config.set("data.shape", shape, "the network's pictures");
        config.set("data.mean", "[0.5]", "its pixels go from -1 to 1");
        config.set("data.std", "[0.5]", "its pixels go from -1 to 1");
        return kImageNetSamples;
    }
    if (name != "cifar10") return 0;
    if (folder.empty()) {
        set_synthetic(kCifar, kCifarTest, 11, config);
        config.set("data.shape", shape, "the network's pictures");
        return kCifar;
    }
    config.set_text("data.format", "cifar", "the binary version of CIFAR-10; theirs reads Python's");
    config.set_text("data.train", below(folder, "data_batch_*.bin"), "--data_dir");
    config.set_text("data.test", below(folder, "test_batch.bin"), "--data_dir: seen whole, each sample once");
    config.set("data.mean", "[0.5]", "its pixels go from -1 to 1");
    config.set("data.std", "[0.5]", "its pixels go from -1 to 1");
    return kCifar;
}

void import_image_folders(const std::string& train, const std::string& test, int64_t side, Imported& config) {
    config.set_text("data.format", "image_folder", "a folder of pictures for each class");
    config.set_text("data.train", train, "training pictures");
    config.set_text("data.test", test, "seen whole, each sample once");
    config.set("data.shape", fmt::format("[{}, {}, 3]", side, side), "the network's pictures");
    config.set("data.mean", "[0.485, 0.456, 0.406]", "torchvision's, of its channels");
    config.set("data.std", "[0.229, 0.224, 0.225]", "torchvision's, of its channels");
    config.set("augment.resized_crop", "true", "torchvision's RandomResizedCrop");
    config.set("augment.flip", "true", "torchvision's RandomHorizontalFlip");
}

void import_made_up_pictures(int64_t side, std::string_view why, Imported& config) {
    config.set_text("data.format", "synthetic", std::string(why));
    config.set("data.shape", fmt::format("[{}, {}, 3]", side, side), "the network's pictures");
    config.set("data.classes", int64_t{1000}, "as many as ImageNet has");
}

void import_torchvision_model(const FlagList::Flag& flag, Imported& config) {
    constexpr std::string_view kNetworks[] = {"resnet18", "resnet34", "resnet50", "alexnet",
                                              "vgg11",    "vgg16",    "googlenet"};
    std::string known;
    for (const std::string_view network : kNetworks) {
        known.append(known.empty() ? "" : ", ").append(network);
        if (flag.value != network) continue;
        config.set_text("model.name", network, flag.spelled);
        config.set_text("model.flavor", "torchvision", "its layers, names and initial weights");
        if (network == "alexnet" || network.starts_with("vgg")) config.set("model.dropout", 0.5, "torchvision's");
        if (network == "googlenet") config.set("model.dropout", 0.2, "torchvision's");
        if (!network.starts_with("resnet") && network != "googlenet") return;
        if (network == "googlenet") config.set("batch_norm.epsilon", 1e-3, "torchvision's, of this network");
        config.set_text("batch_norm.scope", "global", "one machine with the whole batch; theirs: each GPU by itself");
        config.set("batch_norm.unbiased", "true", "PyTorch's running variance is over n - 1");
        return;
    }
    fail(ErrorKind::kUsage,
         "{}: Lockstep has no such network; it has {}, and model.name = \"custom\" for a list of layers", flag.spelled,
         known);
}

}  // namespace lockstep

#include "explain/horovod_scripts.hpp"

#include <string>

namespace lockstep {
namespace {

constexpr std::string_view kKerasLayers = R"([
  { kind = "conv", channels = 32, kernel = 3, padding = "valid", activation = "relu" },
  { kind = "conv", channels = 64, kernel = 3, padding = "valid", activation = "relu" },
  { kind = "pool", kernel = 2 },
  { kind = "dropout", rate = 0.25 },
  { kind = "dense", units = 128, activation = "relu" },
  { kind = "dropout", rate = 0.5 },
  { kind = "dense", units = 10 },
])";

constexpr HorovodScript kScripts[] = {
    {.name = "pytorch_imagenet_resnet50.py",
     .data = HorovodData::kImageNet,
     .network = "resnet50",
     .decay = 5e-5,
     .warmup = 5,
     .falls = true},
    {.name = "keras_imagenet_resnet50.py",
     .data = HorovodData::kImageNet,
     .network = "resnet50",
     .decay = 5e-5,
     .warmup = 5,
     .falls = true,
     .keras = true},
    {.name = "pytorch_mnist.py", .data = HorovodData::kMnist, .batch = 64, .epochs = 10, .lr = 0.01, .momentum = 0.5},
    {.name = "mxnet_mnist.py", .data = HorovodData::kMnist, .batch = 64, .epochs = 5, .lr = 0.01},
    {.name = "tensorflow2_keras_mnist.py",
     .data = HorovodData::kMnist,
     .layers = kKerasLayers,
     .batch = 128,
     .epochs = 0,
     .steps = 500,
     .rounds = 24,
     .optimizer = "adam",
     .lr = 0.001,
     .warmup = 3 * 500 * 128 / 60000.0,
     .keras = true},
    {.name = "tensorflow2_mnist.py",
     .data = HorovodData::kMnist,
     .layers = kKerasLayers,
     .batch = 128,
     .epochs = 0,
     .steps = 10000,
     .optimizer = "adam",
     .lr = 0.001,
     .keras = true},
    {.name = "tensorflow_mnist.py",
     .data = HorovodData::kMnist,
     .batch = 100,
     .epochs = 0,
     .steps = 20000,
     .optimizer = "adam",
     .lr = 0.001},
    {.name = "pytorch_cifar10.py",
     .data = HorovodData::kCifar,
     .batch = 128,
     .lr = 0.01,
     .decay = 5e-4,
     .cosine_epochs = 200},
    {.name = "pytorch_synthetic_benchmark.py",
     .data = HorovodData::kMadeUp,
     .network = "resnet50",
     .epochs = 0,
     .steps = 110,
     .optimizer = "sgd",
     .lr = 0.01},
    {.name = "tensorflow2_synthetic_benchmark.py",
     .data = HorovodData::kMadeUp,
     .network = "resnet50",
     .epochs = 0,
     .steps = 110,
     .optimizer = "sgd",
     .lr = 0.01,
     .scales_lr = false},
    {.name = "tensorflow_synthetic_benchmark.py",
     .data = HorovodData::kMadeUp,
     .network = "resnet50",
     .epochs = 0,
     .steps = 110,
     .optimizer = "sgd",
     .lr = 0.01,
     .scales_lr = false},
};

}  // namespace

HorovodScript horovod_script(std::string_view name) {
    std::string plain(name);
    if (const std::size_t elastic = plain.rfind("_elastic.py"); elastic != std::string::npos)
        plain.erase(elastic, std::string_view("_elastic").size());
    for (const HorovodScript& script : kScripts) {
        if (script.name == plain) return script;
    }
    return {};
}

HorovodScript horovod_imagenet() {
    return kScripts[0];
}

}  // namespace lockstep

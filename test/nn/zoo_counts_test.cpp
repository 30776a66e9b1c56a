// The models of the zoo against published facts: parameters, tensors, and the shapes on the way.
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "nn/zoo_fixture.hpp"

namespace lockstep::test {
namespace {

constexpr SampleShape kLarge{224, 224, 3}, kCrop{227, 227, 3}, kCifar{32, 32, 3};

TEST_CASE("flavor tf has the parameters and tensors of TensorFlow's benchmarks") {
    struct Case {
        const char* name;
        SampleShape input;
        int classes;
        int64_t parameters;
        std::size_t tensors;
    };
    const std::vector<Case> cases{
        {"trivial", kCrop, 1001, 4'263'877, 6},
        {"trivial", kCifar, 11, 56'332, 6},
        {"lenet", {28, 28, 3}, 1001, 2'173'353, 8},
        {"alexnet", kCrop, 1001, 61'842'345, 16},
        {"alexnet", kCifar, 11, 1'756'619, 10},
        {"vgg16", kLarge, 1001, 138'361'641, 32},
        {"googlenet", kLarge, 1001, 6'999'577, 116},
        {"resnet50", kLarge, 1001, 25'559'081, 161},
        {"resnet50_v1.5", kLarge, 1001, 25'559'081, 161},
        {"resnet20", kCifar, 11, 269'787, 59},
        {"resnet32", kCifar, 11, 464'219, 95},
        {"resnet44", kCifar, 11, 658'651, 131},
        {"resnet56", kCifar, 11, 853'083, 167},
    };
    for (const Case& c : cases) {
        INFO(c.name << " of " << c.classes << " classes");
        const Model model = build_model(spec_of(c.name, "tf", c.input, c.classes));
        CHECK(model.parameters.trainable() == c.parameters);
        CHECK(model.parameters.all().size() == c.tensors);
        CHECK(model.layers.back().out == SampleShape{1, 1, c.classes});
    }
}

TEST_CASE("the lockstep flavor has the parameters and tensors of the common PyTorch forms") {
    struct Case {
        const char* name;
        SampleShape input;
        int classes;
        int64_t parameters;
        std::size_t tensors;
    };
    const std::vector<Case> cases{
        {"logistic", {28, 28, 1}, 10, 7'850, 2},     {"mlp", {28, 28, 1}, 10, 535'818, 6},
        {"trivial", {28, 28, 1}, 10, 49'947, 6},     {"lenet", {28, 28, 1}, 10, 1'663'370, 8},
        {"alexnet", kLarge, 1000, 61'100'840, 16},   {"alexnet", kCifar, 10, 1'756'426, 10},
        {"vgg11", kLarge, 1000, 132'863'336, 22},    {"vgg16", kLarge, 1000, 138'357'544, 32},
        {"googlenet", kLarge, 1000, 6'624'904, 173}, {"resnet18", kLarge, 1000, 11'689'512, 62},
        {"resnet34", kLarge, 1000, 21'797'672, 110}, {"resnet50", kLarge, 1000, 25'557'032, 161},
        {"resnet20", {28, 28, 1}, 10, 272'186, 65},  {"resnet20", kCifar, 10, 272'474, 65},
        {"resnet32", kCifar, 10, 466'906, 101},      {"resnet44", kCifar, 10, 661'338, 137},
        {"resnet56", kCifar, 10, 855'770, 173},
    };
    for (const Case& c : cases) {
        INFO(c.name << " of " << c.classes << " classes");
        const Model model = build_model(spec_of(c.name, "lockstep", c.input, c.classes));
        CHECK(model.parameters.trainable() == c.parameters);
        CHECK(model.parameters.all().size() == c.tensors);
    }
    // Of small pictures VGG leaves one place, which is all its dense layers read.
    CHECK(layer_of(build_model(spec_of("vgg11", "lockstep", kCifar, 10)), "classifier.0").in == SampleShape{1, 1, 512});
}

TEST_CASE("the maps of a ResNet-50 halve where the paper halves them, in every flavor") {
    for (const char* flavor : {"lockstep", "tf", "torchvision"}) {
        INFO(flavor);
        const Model model = build_model(spec_of("resnet50", flavor, kLarge, 1000));
        CHECK(layer_of(model, "conv1").out == SampleShape{112, 112, 64});
        CHECK(layer_of(model, "maxpool").out == SampleShape{56, 56, 64});
        CHECK(layer_of(model, "layer1.2.relu").out == SampleShape{56, 56, 256});
        CHECK(layer_of(model, "layer2.3.relu").out == SampleShape{28, 28, 512});
        CHECK(layer_of(model, "layer3.5.relu").out == SampleShape{14, 14, 1024});
        CHECK(layer_of(model, "layer4.2.relu").out == SampleShape{7, 7, 2048});
        CHECK(layer_of(model, "avgpool").out == SampleShape{1, 1, 2048});
    }
}

TEST_CASE("v1 strides in the first convolution of a bottleneck, v1.5 in the second") {
    const auto strides = [](const char* name, const char* flavor) {
        const Model model = build_model(spec_of(name, flavor, kLarge, 1000));
        return std::pair(layer_of(model, "layer2.0.conv1").conv.stride_h,
                         layer_of(model, "layer2.0.conv2").conv.stride_h);
    };
    CHECK(strides("resnet50", "tf") == std::pair(2, 1));
    CHECK(strides("resnet50", "lockstep") == std::pair(1, 2));
    CHECK(strides("resnet50", "torchvision") == std::pair(1, 2));
    CHECK(strides("resnet50_v1", "lockstep") == std::pair(2, 1));
    CHECK(strides("resnet50_v1.5", "tf") == std::pair(1, 2));
}

TEST_CASE("padding of strided windows: TensorFlow's odd row lies below, PyTorch's is on both sides") {
    const Model tf = build_model(spec_of("resnet18", "tf", kLarge, 1000));
    CHECK(layer_of(tf, "maxpool").pool.pad_top == 0);
    CHECK(layer_of(tf, "maxpool").pool.pad_bottom == 1);
    CHECK(layer_of(tf, "layer2.0.conv1").conv.pad_left == 0);
    CHECK(layer_of(tf, "layer2.0.conv1").conv.pad_right == 1);
    const Model torch = build_model(spec_of("resnet18", "torchvision", kLarge, 1000));
    CHECK(layer_of(torch, "maxpool").pool.pad_top == 1);
    CHECK(layer_of(torch, "maxpool").pool.pad_bottom == 1);
    CHECK(layer_of(torch, "layer2.0.conv1").conv.pad_left == 1);
    // Ceiling poolings of torchvision's googlenet end where TensorFlow's do at these sizes.
    for (const char* flavor : {"tf", "torchvision"}) {
        const Model net = build_model(spec_of("googlenet", flavor, kLarge, 1000));
        CHECK(layer_of(net, "maxpool1").out == SampleShape{56, 56, 64});
        CHECK(layer_of(net, "inception3b").out == SampleShape{28, 28, 480});
        CHECK(layer_of(net, "inception4e").out == SampleShape{14, 14, 832});
        CHECK(layer_of(net, "inception5b").out == SampleShape{7, 7, 1024});
    }
}

TEST_CASE("flavor tf of a small ResNet shortens by zero channels, half on each side, and starts without a relu") {
    const Model model = build_model(spec_of("resnet20", "tf", kCifar, 11));
    const LayerSpec& pad = layer_of(model, "layer2.0.pad");
    CHECK(pad.pad_before == 8);
    CHECK(pad.in == SampleShape{16, 16, 16});
    CHECK(pad.out == SampleShape{16, 16, 32});
    CHECK(layer_of(model, "layer2.0.subsample").pool.stride_h == 2);
    CHECK(layer_names(model).find("bn1 layer1.0.conv1") != std::string::npos);
    CHECK(layer_names(build_model(spec_of("resnet20", "lockstep", kCifar, 10))).find("bn1 relu layer1.0.conv1") !=
          std::string::npos);
}

TEST_CASE("batch norm starts at gamma 1 and beta 0, with the config's numbers, and keeps its running values behind") {
    ModelSpec spec = spec_of("resnet20", "lockstep", kCifar, 10);
    spec.norm_momentum = 0.75;
    spec.norm_epsilon = 1e-3;
    spec.global_norm = spec.norm_unbiased = true;
    const Model model = build_model(spec);
    std::set<int64_t> running;
    for (const LayerSpec& layer : model.layers) {
        if (layer.kind != LayerKind::kBatchNorm) continue;
        CHECK(layer.norm.momentum == 0.75F);
        CHECK(layer.norm.one_minus_momentum == 0.25F);
        CHECK(layer.norm.epsilon == 1e-3F);
        CHECK((layer.norm.global && layer.norm.unbiased));
        CHECK(layer.running >= model.parameters.flat_elements());
        CHECK(running.insert(layer.running).second);
    }
    CHECK(running.size() == 21);
    CHECK(model.parameters[1].initial.value == 1);
    CHECK(model.parameters[2].initial.value == 0);
}

TEST_CASE("every model of every flavor names its layers and tensors once, and starts with finite deviations") {
    for (const char* name : {"mlp", "lenet", "trivial", "logistic", "alexnet", "vgg11", "googlenet", "resnet18",
                             "resnet50", "resnet20", "wide_deep"}) {
        for (const char* flavor : {"lockstep", "tf", "torchvision"}) {
            if (std::string(name) == "resnet20" && std::string(flavor) == "torchvision") continue;
            INFO(name << " " << flavor);
            const Model model = build_model(spec_of(name, flavor, kLarge, 10));
            std::set<std::string> layers, tensors;
            for (const LayerSpec& layer : model.layers) CHECK(layers.insert(layer.name).second);
            for (const Parameter& tensor : model.parameters.stored()) {
                CHECK(tensors.insert(tensor.name).second);
                CHECK((tensor.initial.value >= 0 && tensor.initial.value < 1.5));
            }
        }
    }
}

TEST_CASE("what a flavor or the samples do not allow is refused, naming layer and shapes") {
    CHECK(refusal(spec_of("resnet20", "torchvision", kCifar, 10)).find("torchvision has no resnet20") !=
          std::string::npos);
    const std::string vgg = refusal(spec_of("vgg16", "lockstep", {28, 28, 1}, 10));
    CHECK(vgg.find("layer features.30 pools 2x2 and gets 1x1x512") != std::string::npos);
    CHECK(vgg.find("28x28x1") != std::string::npos);
    CHECK(refusal(spec_of("alexnet", "torchvision", {256, 240, 3}, 10)).find("averages 7x6x256 to 6x6") !=
          std::string::npos);
    ModelSpec spec = spec_of("mlp", "lockstep", {1, 1, 4}, 3);
    spec.loss = "sigmoid";
    CHECK(refusal(spec).find("sigmoid needs two classes, and the data have 3") != std::string::npos);
    spec.loss = "softmax";
    spec.classes = 0;
    CHECK(refusal(spec).find("softmax needs classes") != std::string::npos);
}

TEST_CASE("a loss of one value has one output") {
    for (const char* name : {"mlp", "logistic", "wide_deep", "lenet", "resnet20"}) {
        ModelSpec spec = spec_of(name, "lockstep", {28, 28, 1}, 2);
        spec.loss = "sigmoid";
        CHECK(build_model(spec).layers.back().out == SampleShape{1, 1, 1});
        spec.loss = "mse";
        spec.classes = 0;
        CHECK(build_model(spec).layers.back().out == SampleShape{1, 1, 1});
        spec.classes = 2;  // class numbers are no targets
        CHECK_THROWS_WITH(build_model(spec), Catch::Contains("train.loss: mse needs numbers"));
    }
}

}  // namespace
}  // namespace lockstep::test

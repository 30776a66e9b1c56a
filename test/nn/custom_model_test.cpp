// Models from [[model.layers]]: the same as the zoo's where they say the same, and faults with their line.
#include <catch2/catch.hpp>

#include "config/config.hpp"
#include "io/temp_folder.hpp"
#include "nn/zoo_fixture.hpp"

namespace lockstep::test {
namespace {

/// The layers of a file that begins with two lines of its own.
ModelSpec custom(const std::string& layers, SampleShape input = {12, 12, 1}) {
    const TempFolder folder;
    ConfigSources sources;
    sources.files = {folder.write("net.toml", "data.format = \"synthetic\"\ntrain.epochs = 1\n" + layers)};
    ModelSpec spec = spec_of("custom", "lockstep", input, 10);
    spec.layers = load_config(sources).config.model.layers;
    // Without the folder, whose name is another each time.
    for (ConfigTable& table : spec.layers) table.origin.erase(0, folder.path().size() + 1);
    return spec;
}

std::string layer(const std::string& entries) {
    return "[[model.layers]]\n" + entries + "\n";
}

const std::string kEnd = layer("kind = \"dense\"\nunits = 10");

bool are_equal(const Model& left, const Model& right) {
    if (left.layers.size() != right.layers.size()) return false;
    for (std::size_t i = 0; i < left.layers.size(); ++i) {
        const LayerSpec &a = left.layers[i], &b = right.layers[i];
        if (a.kind != b.kind || a.inputs != b.inputs || a.in != b.in || a.out != b.out || !(a.conv == b.conv) ||
            !(a.pool == b.pool) || a.weight != b.weight || a.bias != b.bias || a.running != b.running)
            return false;
    }
    return left.parameters.trainable() == right.parameters.trainable();
}

TEST_CASE("lenet written out as a list is lenet") {
    const std::string conv1 = layer("kind = \"conv\"\nchannels = 32\nkernel = 5\nactivation = \"relu\"");
    const std::string rest = layer("kind = \"pool\"\nkernel = 2") +
                             layer("kind = \"conv\"\nchannels = 64\nkernel = [5, 5]\npadding = \"same\"") +
                             layer("kind = \"relu\"") + layer("kind = \"pool\"\nkernel = 2") +
                             layer("kind = \"flatten\"") +
                             layer("kind = \"dense\"\nunits = 512\nactivation = \"relu\"") + kEnd;
    const Model lenet = build_model(spec_of("lenet", "lockstep", {12, 12, 1}, 10));
    const Model model = build_model(custom(conv1 + rest));
    CHECK(are_equal(model, lenet));
    CHECK(layer_names(model) == "conv1 conv1.relu pool1 conv2 relu1 pool2 dense1 dense1.relu dense2");
    CHECK_FALSE(are_equal(build_model(custom(conv1 + layer("kind = \"lrn\"") + rest)), lenet));
}

TEST_CASE("a name that makes two tensors of one name is refused before any step") {
    const std::string conv = layer("kind = \"conv\"\nname = \"c\"\nchannels = 4\nkernel = 3\nnorm = true");
    const std::string norm = layer("kind = \"batch_norm\"\nname = \"c.bn\"");
    CHECK_THROWS_WITH(build_model(custom(conv + norm + kEnd)), Catch::Contains("two layers have a tensor c.bn.weight"));
}

TEST_CASE("a residual block of one table is the block of the zoo, written out with from it has the same layers") {
    const std::string start = layer("kind = \"conv\"\nname = \"stem\"\nchannels = 8\nkernel = 3\nnorm = true");
    const std::string end = layer("kind = \"global_pool\"") + kEnd;
    const Model compact =
        build_model(custom(start + layer("kind = \"residual\"\nname = \"block\"\nchannels = 16\nstride = 2") + end));
    const Model written = build_model(custom(
        start +
        layer("kind = \"conv\"\nchannels = 16\nkernel = 3\nstride = 2\npad = 1\nnorm = true\nactivation = \"relu\"") +
        layer("kind = \"conv\"\nname = \"main\"\nchannels = 16\nkernel = 3\nnorm = true") +
        layer(
            "kind = \"conv\"\nname = \"short\"\nfrom = \"stem\"\nchannels = 16\nkernel = 1\nstride = 2\nnorm = true") +
        layer("kind = \"add\"\nfrom = [\"main\", \"short\"]\nactivation = \"relu\"") + end));
    CHECK(are_equal(compact, written));
    CHECK(layer_of(compact, "block.add").out == SampleShape{6, 6, 16});
}

TEST_CASE("branches meet in a concat, and every kind of layer builds") {
    const Model model = build_model(custom(
        layer("kind = \"conv\"\nname = \"a\"\nchannels = 4\nkernel = 3\ndilation = 2\ngroups = 1\nbias = false") +
        layer("kind = \"conv\"\nname = \"b\"\nfrom = \"input\"\nchannels = 3\nkernel = [1, 3]\ndeviation = "
              "0.5\nbias_value = 1") +
        layer("kind = \"concat\"\nname = \"both\"\nfrom = [\"a\", \"b\"]") +
        layer("kind = \"batch_norm\"\nactivation = \"relu\"") + layer("kind = \"lrn\"\nradius = 1\nalpha = 0.1") +
        layer("kind = \"pool\"\nmode = \"average\"\nkernel = 3\nstride = 2\npad = [0, 1, 0, 1]") +
        layer("kind = \"pad_channels\"\nbefore = 1\nbehind = 2") +
        layer("kind = \"residual\"\nchannels = 12\nblock = \"bottleneck\"") + layer("kind = \"sigmoid\"") +
        layer("kind = \"dropout\"\nrate = 0.25") + layer("kind = \"global_pool\"") + layer("kind = \"dropout\"") +
        kEnd));
    CHECK(layer_of(model, "both").out == SampleShape{12, 12, 7});
    CHECK(layer_of(model, "pool1").out == SampleShape{6, 6, 7});
    CHECK(layer_of(model, "pad_channels1").out == SampleShape{6, 6, 10});
    CHECK(layer_of(model, "dropout1").dropout.probability == 0.25F);
    CHECK(layer_of(model, "a").bias == -1);
    CHECK(layer_names(model).find("dropout2") == std::string::npos);  // of model.dropout, which is 0
    CHECK(layer_of(model, "b").conv.pad_left == 1);
    CHECK(layer_of(model, "b").conv.pad_top == 0);
}

TEST_CASE("columns of a table enter by name") {
    ModelSpec spec = custom(
        layer("kind = \"one_hot\"\nname = \"plain\"\ncolumns = [\"age\", \"sex\"]") +
            layer("kind = \"embedding\"\nname = \"job\"\nfrom = \"input\"\ncolumns = \"occupation\"\nunits = 3") +
            layer("kind = \"concat\"\nfrom = [\"plain\", \"job\"]") + kEnd,
        {1, 1, 3});
    spec.columns = {{.name = "age"}, {.name = "occupation", .categories = 6}, {.name = "sex", .categories = 2}};
    const Model model = build_model(spec);
    CHECK(layer_of(model, "plain").columns == std::vector<ExpandColumn>{{0, 0}, {2, 2}});
    CHECK(layer_of(model, "concat1").out == SampleShape{1, 1, 6});
    // Read past them, categories would be magnitudes; a table of numbers may be.
    for (const char* kind : {"kind = \"dense\"\nunits = 4", "kind = \"flatten\""}) {
        ModelSpec raw = custom(layer(std::string(kind) + "\nname = \"first\"") + kEnd, {1, 1, 3});
        raw.columns = spec.columns;
        CHECK_THAT(refusal(raw), Catch::Contains("net.toml:3:1: layer first would read the categories of column "
                                                 "occupation as magnitudes; put a one_hot or an embedding before it"));
        for (Column& column : raw.columns) column.categories = 0;
        CHECK_NOTHROW(build_model(raw));
    }
    spec.columns[1].name = "ocupation";
    CHECK(refusal(spec).find("there is no \"occupation\"; did you mean ocupation?") != std::string::npos);
}

TEST_CASE("a fault of a layer is told with its line") {
    const std::string conv = layer("kind = \"conv\"\nchannels = 4\nkernel = 3");  // three lines
    const std::vector<std::pair<std::string, std::string>> cases{
        {layer("kind = \"conv\"\nkernel = 3") + kEnd, "net.toml:3:1: a conv needs channels"},
        {layer("kind = \"conv\"\nchannels = 3") + kEnd, "net.toml:3:1: a conv needs kernel"},
        {conv + layer("kind = \"relu\"\nkernel = 3") + kEnd, "net.toml:7:1: a relu has no kernel"},
        {conv + layer("kind = \"pool\"\nkernel = 13") + kEnd, "net.toml:7:1: layer pool1 pools 13x13 and gets 12x12x4"},
        {conv + layer("kind = \"add\"\nfrom = [\"conv1\", \"input\"]") + kEnd,
         "net.toml:7:1: layer add1 adds 12x12x4 and 12x12x1, whose shapes differ"},
        {conv + layer("kind = \"add\"\nfrom = \"conv1\"") + kEnd, "net.toml:7:1: add reads two layers or more, got 1"},
        {conv + layer("kind = \"dense\"\nunits = 10\nfrom = \"cnov1\""),
         "net.toml:7:1: from: no layer before it is named \"cnov1\"; did you mean conv1?"},
        {conv + layer("kind = \"relu\"\nname = \"conv1\"") + kEnd,
         "net.toml:7:1: name \"conv1\": another layer has it"},
        {conv + layer("kind = \"dense\"\nunits = 10\nfrom = \"input\""),
         "net.toml:3:1: layer conv1: nothing reads its output"},
        {conv + layer("kind = \"dense\"\nunits = 9"),
         "net.toml:7:1: layer dense1: the last layer must have the 10 outputs of the loss (softmax), and has 1x1x9"},
        {conv + layer("kind = \"conv\"\nchannels = 6\nkernel = 3\ngroups = 4") + kEnd,
         "net.toml:7:1: layer conv2 cuts 4 channels into 6 channels in 4 groups"},
        {conv + layer("kind = \"pool\"\nkernel = 2\npad = [1, 2]") + kEnd, "net.toml:7:1: pad must be a number or"},
        {conv + layer("kind = \"conv\"\nchannels = 4\nkernel = 32768") + kEnd,
         "net.toml:7:1: layer conv2 convolves 32768x32768, and a kernel can have 65536 taps"},
        {conv + layer("kind = \"conv\"\nchannels = 4\nkernel = 3\npad = 32768") + kEnd,
         "net.toml:7:1: layer conv2 convolves samples of 12x12x4 that are 65548x65548x4 with their padding"},
        {conv + layer("kind = \"pool\"\nkernel = 32768\npad = 32767\nmode = \"average\"") + kEnd,
         "net.toml:7:1: layer pool1 pools samples of 12x12x4 that are 65546x65546x4 with their padding"},
        {conv + layer("kind = \"conv\"\nchannels = 1000000000\nkernel = 3") + kEnd,
         "net.toml:7:1: layer conv2 would have 36 weights for each of 1000000000 outputs, and a layer can have "
         "2147483647 in all"},
        {conv + layer("kind = \"residual\"\nchannels = 1000000000") + kEnd,
         "net.toml:7:1: layer residual1.conv1 would have 36 weights for each of 1000000000 outputs"},
        {conv + layer("kind = \"dense\"\nunits = 4000000") + kEnd,
         "net.toml:7:1: layer dense1 would have 576 weights for each of 4000000 outputs"},
        {conv + layer("kind = \"pad_channels\"\nbefore = 1073741824\nbehind = 1073741824") + kEnd,
         "net.toml:7:1: layer pad_channels1 would have 2147483652 outputs, which is not possible"},
        {conv + layer("kind = \"pad_channels\"\nname = \"wide\"\nbehind = 14913076") +
             layer("kind = \"concat\"\nfrom = [\"wide\", \"conv1\"]") + kEnd,
         "net.toml:11:1: layer concat1 would have outputs of 12x12x14913084, which are too many"},
        {conv + layer("kind = \"pad_channels\"\nbehind = 10000") + layer("kind = \"lrn\"\nradius = 3001") + kEnd,
         "net.toml:10:1: layer lrn1 normalises over 3001 channels on each side, and can over 3000"},
        {conv + layer("kind = \"one_hot\"") + kEnd, "net.toml:7:1: one_hot reads the columns of a table"},
        {conv + layer("kind = \"residual\"\nchannels = 6\nblock = \"bottleneck\"") + kEnd,
         "net.toml:7:1: a bottleneck has a quarter of its channels inside, and 6"},
        {conv + layer("kind = \"relu\"\nname = \"block/relu\"") + kEnd,
         "net.toml:7:1: name \"block/relu\": can hold letters, digits, \".\", \"_\" and \"-\""},
        {conv + layer("kind = \"relu\"\nname = \"a\\u001b[2J\\nb\"") + kEnd,
         "net.toml:7:1: name \"a\\x1b[2J\\x0ab\": can hold"},
        {conv + layer("kind = \"relu\"\nname = \"\"") + kEnd, "net.toml:7:1: name \"\": is empty"},
        {"", "model.layers: custom needs at least one [[model.layers]]"},
    };
    for (const auto& [layers, message] : cases) {
        INFO(layers);
        CHECK(refusal(custom(layers)).substr(0, message.size()) == message);
    }
}

TEST_CASE("every faulty layer of a list is told, and a fault of one makes none of another that names it") {
    const std::string layers = layer(
                                   "kind = \"conv\"\nname = \"a b\"\nchannels = 4\nkernel = 3\npad = 1\npadding = "
                                   "\"same\"") +
                               layer("kind = \"relu\"\nunits = 3\nfrom = \"a b\"") + layer("kind = \"dense\"");
    CHECK(refusal(custom(layers)) ==
          "net.toml:3:1: padding and pad are both set; set one\n"
          "net.toml:10:1: a relu has no units; it has: name, from\n"
          "net.toml:14:1: a dense needs units");
}

TEST_CASE("an embedding starts with the deviation that it is told, else with that of its width") {
    const auto deviation_of = [](const std::string& more) {
        ModelSpec spec = custom(layer("kind = \"embedding\"\nname = \"job\"\nunits = 16" + more) + kEnd, {1, 1, 1});
        spec.columns = {{.name = "occupation", .categories = 4000}};
        return build_model(spec).parameters.all().front().initial.value;
    };
    CHECK(deviation_of("") == 0.25);
    CHECK(deviation_of("\ndeviation = 0.5") == 0.5);
}

}  // namespace
}  // namespace lockstep::test

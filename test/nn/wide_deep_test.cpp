// Wide & deep, and the other models on tables: which columns enter where, as what.
#include <catch2/catch.hpp>

#include "nn/zoo_fixture.hpp"

namespace lockstep::test {
namespace {

/// age, occupation (6 categories, embedded), education (4, one-hot), a cross of both (24, wide only).
ModelSpec census(const std::string& name) {
    ModelSpec spec = spec_of(name, "lockstep", {1, 1, 4}, 2);
    spec.loss = "sigmoid";
    spec.hidden = {8, 5};
    spec.columns = {{.name = "age", .wide = false},
                    {.name = "occupation", .categories = 6, .embedding = 3},
                    {.name = "education", .categories = 4},
                    {.name = "education_x_occupation", .categories = 24, .deep = false}};
    return spec;
}

std::string tensors(const Model& model) {
    std::string all;
    for (const Parameter& p : model.parameters.all()) {
        all += p.name + " ";
        for (const int64_t extent : p.shape) all += std::to_string(extent) + " ";
    }
    return all;
}

TEST_CASE("wide & deep adds a linear part of one-hot columns and a deep part of numbers, one-hot and embeddings") {
    const Model model = build_model(census("wide_deep"));
    CHECK(layer_names(model) ==
          "wide.expand wide expand embedding.occupation.one_hot embedding.occupation features deep.fc1 deep.relu1 "
          "deep.fc2 "
          "deep.relu2 deep.fc3 logits");
    CHECK(tensors(model) ==
          "wide.weight 1 34 wide.bias 1 embedding.occupation.weight 3 6 deep.fc1.weight 8 8 deep.fc1.bias 8 "
          "deep.fc2.weight 5 8 deep.fc2.bias 5 deep.fc3.weight 1 5 deep.fc3.bias 1 ");
    CHECK(layer_of(model, "wide.expand").columns == std::vector<ExpandColumn>{{1, 6}, {2, 4}, {3, 24}});
    CHECK(layer_of(model, "expand").columns == std::vector<ExpandColumn>{{0, 0}, {2, 4}});
    CHECK(layer_of(model, "embedding.occupation.one_hot").columns == std::vector<ExpandColumn>{{1, 6}});
    CHECK(layer_of(model, "features").out == SampleShape{1, 1, 8});
    CHECK(layer_of(model, "logits").out == SampleShape{1, 1, 1});
    CHECK(model.parameters[0].initial.value == 0);  // the linear part starts in the middle
}

TEST_CASE("logistic and mlp read all columns, categories as one-hot") {
    const Model logistic = build_model(census("logistic"));
    CHECK(layer_names(logistic) == "expand fc");
    CHECK(tensors(logistic) == "fc.weight 1 35 fc.bias 1 ");
    CHECK(tensors(build_model(census("mlp"))).starts_with("fc1.weight 8 35 fc1.bias 8 "));
    ModelSpec spec = census("logistic");
    spec.loss = "softmax";
    CHECK(tensors(build_model(spec)) == "fc.weight 2 35 fc.bias 2 ");
}

TEST_CASE("columns that are numbers only are not expanded") {
    ModelSpec spec = census("mlp");
    spec.columns = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
    CHECK(layer_names(build_model(spec)) == "fc1 relu1 fc2 relu2 fc3");
    spec.columns.clear();
    CHECK(layer_names(build_model(spec)) == "fc1 relu1 fc2 relu2 fc3");
    spec.name = "wide_deep";
    CHECK(layer_names(build_model(spec)) == "wide deep.fc1 deep.relu1 deep.fc2 deep.relu2 deep.fc3 logits");
}

TEST_CASE("models of pictures refuse tables, of columns or of plain numbers") {
    for (const char* name : {"lenet", "vgg11", "resnet20"}) {
        ModelSpec spec = census(name);
        const std::string start = std::string("model.name: ") + name;
        CHECK_THAT(refusal(spec), Catch::StartsWith(start + " is for pictures and would read the categories of column "
                                                            "occupation as magnitudes; use one of mlp, "));
        spec.columns.clear();
        CHECK_THAT(refusal(spec),
                   Catch::StartsWith(start + " convolves pictures (layer ") &&
                       Catch::Contains("and the samples are a table of " + std::to_string(spec.input.channels) +
                                       " columns; mlp, logistic and wide_deep read tables"));
    }
}

TEST_CASE("a part without columns and an embedding of a number are refused") {
    ModelSpec spec = census("wide_deep");
    for (Column& column : spec.columns) column.wide = false;
    CHECK(refusal(spec).find("no column is wide") != std::string::npos);
    spec = census("wide_deep");
    spec.columns[0].embedding = 2;
    CHECK(refusal(spec).find("embeds column age, which has no categories") != std::string::npos);
}

}  // namespace
}  // namespace lockstep::test

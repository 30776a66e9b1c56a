#include "nn/custom_model.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "config/nearest.hpp"
#include "nn/layer_list.hpp"
#include "nn/models/columns.hpp"
#include "nn/models/residual.hpp"

namespace lockstep {
namespace {

class CustomModel {
  public:
    explicit CustomModel(Builder& builder) : builder_(builder) {}

    void append(const ListedLayer& layer) {
        const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                       [&](const Kind& candidate) { return candidate.name == layer.table.kind(); });
        if (kind == std::end(kKinds)) layer.table.refuse("is listed, and nothing builds it");
        std::vector<int> inputs;
        for (const int place : layer.inputs)
            inputs.push_back(place == kSamples ? kSamples : outputs_[static_cast<std::size_t>(place)]);
        builder_.set_place(layer.table.place());
        check_reads_numbers(layer.table, layer.name, inputs);
        builder_.continue_from(inputs[0]);
        (this->*kind->build)(layer.table, layer.name, inputs);
        outputs_.push_back(builder_.at());
    }

    /// `last`: the layer that was appended last.
    void finish(const ListedLayer& last) const {
        const SampleShape shape = builder_.shape();
        if (shape.elements() == builder_.outputs()) return;
        last.table.refuse(fmt::format(
            "layer {}: the last layer must have the {} outputs of the loss ({}), and has {}; end with a dense of so "
            "many units",
            last.name, builder_.outputs(), builder_.spec().loss, Builder::text(shape)));
    }

  private:
    using Build = void (CustomModel::*)(const LayerTable&, const std::string&, const std::vector<int>&);
    struct Kind {
        std::string_view name;
        Build build;
    };
    static const Kind kKinds[16];

    /// The samples of a table hold categories by number, which say nothing as magnitudes.
    void check_reads_numbers(const LayerTable& table, const std::string& name, const std::vector<int>& inputs) const {
        if (table.kind() == "one_hot" || table.kind() == "embedding") return;
        if (std::find(inputs.begin(), inputs.end(), kSamples) == inputs.end()) return;
        for (const Column& column : builder_.spec().columns) {
            if (column.categories == 0) continue;
            table.refuse(
                fmt::format("layer {} would read the categories of column {} as magnitudes; put a one_hot or an "
                            "embedding before it",
                            name, column.name));
        }
    }

    /// What may stand behind a layer.
    void finish_layer(const LayerTable& table, const std::string& name) {
        if (table.flag("norm", false)) builder_.batch_norm(name + ".bn");
        const std::string activation = table.text("activation").value_or("none");
        if (activation == "relu") builder_.relu(name + ".relu");
        if (activation == "sigmoid") builder_.sigmoid(name + ".sigmoid");
    }

    static Weights weights_of(const LayerTable& table) {
        const bool norm = table.flag("norm", false);
        const bool given = table.has("deviation");
        return {.start = given  ? WeightStart::kGiven
                         : norm ? WeightStart::kHe
                                : WeightStart::kSmall,
                .deviation = table.number("deviation", 0),
                .bias = table.flag("bias", !norm),
                .bias_value = table.number("bias_value", 0)};
    }

    void conv(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        builder_.conv(name, table.required("channels"), table.window(Window::Border::kSame, false), weights_of(table),
                      table.integer("groups", 1));
        finish_layer(table, name);
    }
    void dense(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        builder_.dense(name, table.required("units"), weights_of(table));
        finish_layer(table, name);
    }
    void relu(const LayerTable&, const std::string& name, const std::vector<int>&) { builder_.relu(name); }
    void sigmoid(const LayerTable&, const std::string& name, const std::vector<int>&) { builder_.sigmoid(name); }
    /// Dense layers flatten what they read by themselves: it may be written for whoever looks for it.
    void flatten(const LayerTable&, const std::string&, const std::vector<int>&) {}
    void pool(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        const Window window = table.window(Window::Border::kValid, true);
        if (table.text("mode").value_or("max") == "max") {
            builder_.max_pool(name, window);
        } else {
            builder_.average_pool(name, window);
        }
    }
    void global_pool(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        const bool max = table.text("mode").value_or("average") == "max";
        builder_.global_pool(name, max ? PoolKind::kMax : PoolKind::kAverage);
    }
    void batch_norm(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        builder_.batch_norm(name);
        finish_layer(table, name);
    }
    void dropout(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        const double rate = table.number("rate", builder_.spec().dropout);
        if (rate > 0) builder_.dropout(name, rate);
    }
    void lrn(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        const auto real = [&](std::string_view key, double otherwise) {
            return static_cast<float>(table.number(key, otherwise));
        };
        builder_.lrn(name, table.integer("radius", 4), real("offset", 1), real("alpha", 0.001 / 9), real("beta", 0.75));
    }
    void add(const LayerTable& table, const std::string& name, const std::vector<int>& inputs) {
        builder_.add(name, inputs);
        finish_layer(table, name);
    }
    void concat(const LayerTable&, const std::string& name, const std::vector<int>& inputs) {
        builder_.concat(name, inputs);
    }
    void pad_channels(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        builder_.pad_channels(name, table.integer("before", 0), table.integer("behind", 0));
    }
    void residual(const LayerTable& table, const std::string& name, const std::vector<int>&) {
        const bool bottleneck = table.text("block").value_or("basic") == "bottleneck";
        const std::vector<int64_t> stride = table.integers("stride").value_or(std::vector<int64_t>{1});
        builder_.set_rules({.conv = WeightStart::kHeOut});
        residual_block(builder_, name,
                       {.kind = bottleneck ? ResidualBlock::Kind::kBottleneck : ResidualBlock::Kind::kBasic,
                        .channels = table.required("channels"),
                        .stride = static_cast<int>(stride[0])});
    }

    /// Columns by name; all where none are named.
    std::vector<int> columns_of(const LayerTable& table, const std::vector<int>& inputs) {
        const std::vector<Column>& known = builder_.spec().columns;
        if (known.empty())
            table.refuse(fmt::format("{} reads the columns of a table, and the data have none", table.kind()));
        if (inputs[0] != kSamples) table.refuse(fmt::format("{} reads the samples: from = \"input\"", table.kind()));
        std::vector<int> columns;
        for (const std::string& name : table.strings("columns")) {
            const auto found =
                std::find_if(known.begin(), known.end(), [&](const Column& c) { return c.name == name; });
            if (found == known.end()) {
                std::vector<std::string> names;
                for (const Column& column : known) names.push_back(column.name);
                table.refuse(fmt::format("columns: there is no \"{}\"{}", name, did_you_mean(nearest(name, names))));
            }
            columns.push_back(static_cast<int>(found - known.begin()));
        }
        if (!columns.empty()) return columns;
        for (std::size_t i = 0; i < known.size(); ++i) columns.push_back(static_cast<int>(i));
        return columns;
    }
    void one_hot(const LayerTable& table, const std::string& name, const std::vector<int>& inputs) {
        builder_.expand(name, columns_of(table, inputs));
    }
    void embedding(const LayerTable& table, const std::string& name, const std::vector<int>& inputs) {
        const std::vector<int> columns = columns_of(table, inputs);
        if (columns.size() != 1) table.refuse(fmt::format("an embedding is of one column, got {}", columns.size()));
        std::optional<double> deviation;
        if (table.has("deviation")) deviation = table.number("deviation", 0);
        embed_column(builder_, name, columns[0], table.required("units"), deviation);
    }

    Builder& builder_;
    std::vector<int> outputs_;  // of each layer of the list: the builder's number of what it made
};

const CustomModel::Kind CustomModel::kKinds[16] = {
    {"conv", &CustomModel::conv},
    {"dense", &CustomModel::dense},
    {"relu", &CustomModel::relu},
    {"sigmoid", &CustomModel::sigmoid},
    {"flatten", &CustomModel::flatten},
    {"pool", &CustomModel::pool},
    {"global_pool", &CustomModel::global_pool},
    {"batch_norm", &CustomModel::batch_norm},
    {"dropout", &CustomModel::dropout},
    {"lrn", &CustomModel::lrn},
    {"add", &CustomModel::add},
    {"concat", &CustomModel::concat},
    {"pad_channels", &CustomModel::pad_channels},
    {"residual", &CustomModel::residual},
    {"one_hot", &CustomModel::one_hot},
    {"embedding", &CustomModel::embedding},
};

}  // namespace

void build_custom(Builder& builder) {
    const std::vector<ListedLayer> layers = list_layers(builder.spec().layers);
    CustomModel model(builder);
    for (const ListedLayer& layer : layers) model.append(layer);
    model.finish(layers.back());
}

}  // namespace lockstep

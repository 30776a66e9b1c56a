#include "nn/custom_model.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "config/nearest.hpp"
#include "nn/layer_table.hpp"
#include "nn/models/columns.hpp"
#include "nn/models/residual.hpp"

namespace lockstep {
namespace {

class CustomModel {
  public:
    explicit CustomModel(Builder& builder) : builder_(builder) { outputs_["input"] = {-1, ""}; }

    void append(const LayerTable& table) {
        const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                       [&](const Kind& candidate) { return candidate.name == table.kind(); });
        if (kind == std::end(kKinds)) table.refuse(fmt::format("unknown kind \"{}\"", table.kind()));
        table.check_keys(kind->keys);
        const std::string name = name_of(table);
        const std::vector<int> inputs = inputs_of(table);
        const bool joins = table.kind() == "add" || table.kind() == "concat";
        if (joins ? inputs.size() < 2 : inputs.size() > 1) {
            table.refuse(fmt::format("a {} reads {}, got {}", table.kind(), joins ? "two layers or more" : "one layer",
                                     inputs.size()));
        }
        builder_.set_place(table.place());
        check_reads_numbers(table, name, inputs);
        builder_.continue_from(inputs[0]);
        (this->*kind->build)(table, name, inputs);
        outputs_[name] = {builder_.at(), table.place()};
        last_ = name;
    }

    void finish() const {
        for (const auto& [name, output] : outputs_) {
            if (name == last_ || name == "input" || read_.contains(name)) continue;
            fail(ErrorKind::kUsage, "{}: layer {}: nothing reads its output; name it in a from, or leave it out",
                 output.second, name);
        }
        const SampleShape shape = builder_.shape();
        if (shape.elements() == builder_.outputs()) return;
        fail(ErrorKind::kUsage,
             "{}: layer {}: the last layer must have the {} outputs of the loss ({}), and has {}; end with a dense of "
             "so many units",
             outputs_.at(last_).second, last_, builder_.outputs(), builder_.spec().loss, Builder::text(shape));
    }

  private:
    using Build = void (CustomModel::*)(const LayerTable&, const std::string&, const std::vector<int>&);
    struct Kind {
        std::string_view name;
        std::string_view keys;  // that it has beside kind, name and from
        Build build;
    };
    static const Kind kKinds[16];

    std::string name_of(const LayerTable& table) {
        const int number = ++counts_[table.kind()];
        const std::string name = table.text("name").value_or(fmt::format("{}{}", table.kind(), number));
        if (name.empty() || outputs_.contains(name)) {
            table.refuse(fmt::format("name \"{}\": {}", name, name.empty() ? "is empty" : "another layer has it"));
        }
        return name;
    }

    std::vector<int> inputs_of(const LayerTable& table) {
        if (!table.has("from")) {
            read_.insert(last_);
            return {builder_at_last()};
        }
        std::vector<int> inputs;
        for (const std::string& from : table.strings("from")) {
            const auto found = outputs_.find(from);
            if (found == outputs_.end()) {
                std::vector<std::string> names;
                for (const auto& [name, output] : outputs_) names.push_back(name);
                table.refuse(fmt::format("from: no layer before it is named \"{}\"{}", from,
                                         did_you_mean(nearest(from, names))));
            }
            read_.insert(from);
            inputs.push_back(found->second.first);
        }
        if (inputs.empty()) table.refuse("from names no layer");
        return inputs;
    }

    /// The samples of a table hold categories by number, which say nothing as magnitudes.
    void check_reads_numbers(const LayerTable& table, const std::string& name, const std::vector<int>& inputs) const {
        if (table.kind() == "one_hot" || table.kind() == "embedding") return;
        if (std::find(inputs.begin(), inputs.end(), -1) == inputs.end()) return;
        for (const Column& column : builder_.spec().columns) {
            if (column.categories == 0) continue;
            table.refuse(
                fmt::format("layer {} would read the categories of column {} as magnitudes; put a one_hot or an "
                            "embedding before it",
                            name, column.name));
        }
    }

    int builder_at_last() const { return outputs_.at(last_).first; }

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
        const std::vector<int64_t> stride = table.lengths("stride").value_or(std::vector<int64_t>{1});
        if (stride.size() != 1) table.refuse("a residual has one stride for both directions");
        const int channels = table.required("channels");
        if (bottleneck && channels % 4 != 0) {
            table.refuse(
                fmt::format("a bottleneck has a quarter of its channels inside, and {} is no multiple of 4", channels));
        }
        builder_.set_rules({.conv = WeightStart::kHeOut});
        residual_block(builder_, name,
                       {.kind = bottleneck ? ResidualBlock::Kind::kBottleneck : ResidualBlock::Kind::kBasic,
                        .channels = channels,
                        .stride = static_cast<int>(stride[0])});
    }

    /// Columns by name; all where none are named.
    std::vector<int> columns_of(const LayerTable& table, const std::vector<int>& inputs) {
        const std::vector<Column>& known = builder_.spec().columns;
        if (known.empty())
            table.refuse(fmt::format("a {} reads the columns of a table, and the data have none", table.kind()));
        if (inputs[0] != -1) table.refuse(fmt::format("a {} reads the samples: from = \"input\"", table.kind()));
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
        embed_column(builder_, name, columns[0], table.required("units"));
    }

    Builder& builder_;
    std::map<std::string, std::pair<int, std::string>> outputs_;  // by name: the layer's number and place
    std::set<std::string> read_;
    std::map<std::string, int> counts_;  // of each kind
    std::string last_ = "input";
};

const CustomModel::Kind CustomModel::kKinds[16] = {
    {"conv", "channels kernel stride padding pad dilation groups bias norm activation deviation bias_value",
     &CustomModel::conv},
    {"dense", "units bias norm activation deviation bias_value", &CustomModel::dense},
    {"relu", "", &CustomModel::relu},
    {"sigmoid", "", &CustomModel::sigmoid},
    {"flatten", "", &CustomModel::flatten},
    {"pool", "kernel stride padding pad mode", &CustomModel::pool},
    {"global_pool", "mode", &CustomModel::global_pool},
    {"batch_norm", "activation", &CustomModel::batch_norm},
    {"dropout", "rate", &CustomModel::dropout},
    {"lrn", "radius alpha beta offset", &CustomModel::lrn},
    {"add", "activation", &CustomModel::add},
    {"concat", "", &CustomModel::concat},
    {"pad_channels", "before behind", &CustomModel::pad_channels},
    {"residual", "channels stride block", &CustomModel::residual},
    {"one_hot", "columns", &CustomModel::one_hot},
    {"embedding", "columns units", &CustomModel::embedding},
};

}  // namespace

void build_custom(Builder& builder) {
    const std::vector<ConfigTable>& layers = builder.spec().layers;
    if (layers.empty()) {
        fail(ErrorKind::kUsage, "model.layers: custom needs at least one [[model.layers]]");
    }
    CustomModel model(builder);
    for (std::size_t i = 0; i < layers.size(); ++i) model.append(LayerTable(layers[i], i));
    model.finish();
}

}  // namespace lockstep

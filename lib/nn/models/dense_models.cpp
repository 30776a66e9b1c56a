// Models without convolutions: trivial, logistic regression, the multilayer perceptron, and wide & deep (Cheng et al.
// 2016).
#include <string>

#include "nn/models/columns.hpp"
#include "nn/models/models.hpp"

namespace lockstep {
namespace {

/// fc1 … fcN, a relu (and dropout) after each.
void hidden_layers(Builder& builder, const std::string& prefix) {
    int number = 0;
    for (const int64_t size : builder.spec().hidden) {
        const std::string n = std::to_string(++number);
        builder.dense(prefix + "fc" + n, layer_size(size, "model.hidden"));
        builder.relu(prefix + "relu" + n);
        builder.dropout();
    }
}

std::string last_name(const ModelSpec& spec) {
    return "fc" + std::to_string(spec.hidden.size() + 1);
}

}  // namespace

/// The smallest network that has a large layer: for measuring everything else.
void build_trivial(Builder& builder) {
    expand_all(builder);
    builder.dense("fc1", 1);
    builder.relu("relu1");
    builder.dense("fc2", 4096);
    builder.relu("relu2");
    builder.logits("fc3");
}

/// A convex loss has one minimum: it starts in the middle.
void build_logistic(Builder& builder) {
    expand_all(builder);
    builder.dense("fc", builder.outputs(), {.start = WeightStart::kGiven, .deviation = 0});
}

void build_mlp(Builder& builder) {
    expand_all(builder);
    hidden_layers(builder, "");
    builder.logits(last_name(builder.spec()));
}

void build_wide_deep(Builder& builder) {
    const ModelSpec& spec = builder.spec();
    const std::vector<int> wide = wide_columns(spec), deep = deep_columns(spec);
    if (wide.empty() || deep.empty()) {
        fail(ErrorKind::kUsage,
             "model.name: wide_deep: no column is {}; declare at least one so in data.columns, or use {}",
             wide.empty() ? "wide" : "deep", wide.empty() ? "mlp" : "logistic");
    }
    const int samples = builder.at();
    if (!spec.columns.empty()) builder.expand("wide.expand", wide);
    const int linear = builder.dense("wide", builder.outputs(), {.start = WeightStart::kGiven, .deviation = 0});
    builder.continue_from(samples);
    embed_columns(builder, deep);
    hidden_layers(builder, "deep.");
    const int hidden = builder.logits("deep." + last_name(spec));
    builder.add("logits", {linear, hidden});
}

}  // namespace lockstep

// Names and flavors to models; what holds of all of them before a layer is built.
#include "nn/zoo.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "nn/builder.hpp"
#include "nn/custom_model.hpp"
#include "nn/models/models.hpp"

namespace lockstep {
namespace {

struct ZooRow {
    const char* name;
    void (*build)(Builder&);
    bool tf_starts = false;   // flavor tf starts its weights as that program does
    bool torchvision = true;  // false: it has no such model, nor a habit that another source shares
};

constexpr std::array kZoo{
    ZooRow{"mlp", build_mlp},
    ZooRow{"lenet", build_lenet, true},
    ZooRow{"trivial", build_trivial, true},
    ZooRow{"logistic", build_logistic},
    ZooRow{"alexnet", build_alexnet, true},
    ZooRow{"vgg11", build_vgg11, true},
    ZooRow{"vgg16", build_vgg16, true},
    ZooRow{"googlenet", build_googlenet, true},
    ZooRow{"resnet18", build_resnet18, true},
    ZooRow{"resnet34", build_resnet34, true},
    ZooRow{"resnet50", build_resnet50, true},
    ZooRow{"resnet50_v1", build_resnet50_v1, true},
    ZooRow{"resnet50_v1.5", build_resnet50_v1_5, true},
    ZooRow{"resnet20", build_resnet20, true, false},
    ZooRow{"resnet32", build_resnet32, true, false},
    ZooRow{"resnet44", build_resnet44, true, false},
    ZooRow{"resnet56", build_resnet56, true, false},
    ZooRow{"wide_deep", build_wide_deep},
    ZooRow{"custom", build_custom},
};

const ZooRow& row_of(const std::string& name) {
    std::string known;
    for (const ZooRow& row : kZoo) {
        if (name == row.name) return row;
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    fail(ErrorKind::kUsage, "model.name: \"{}\" is not one of {}", name, known);
}

void check_outputs(const ModelSpec& spec) {
    const bool softmax = spec.loss == "softmax", sigmoid = spec.loss == "sigmoid";
    if (softmax && spec.classes < 1) {
        fail(ErrorKind::kUsage, "train.loss: softmax needs classes, and the data have none; use \"mse\"");
    }
    if (sigmoid && spec.classes != 2) {
        fail(ErrorKind::kUsage, "train.loss: sigmoid needs two classes, and the data have {}; use \"softmax\"",
             spec.classes);
    }
    if (spec.loss == "mse" && spec.classes > 0) {
        fail(ErrorKind::kUsage,
             "train.loss: mse needs numbers to be learned, and the data have {} classes; use \"softmax\"",
             spec.classes);
    }
}

/// The samples of a table hold categories by number, which says nothing as a magnitude. Those that are not for pictures
/// make one-hot values of them.
void check_reads_columns(const ModelSpec& spec) {
    constexpr std::array<std::string_view, 5> kForTables{"mlp", "trivial", "logistic", "wide_deep", "custom"};
    if (std::find(kForTables.begin(), kForTables.end(), spec.name) != kForTables.end()) return;
    for (const Column& column : spec.columns) {
        if (column.categories == 0) continue;
        fail(ErrorKind::kUsage,
             "model.name: {} is for pictures and would read the categories of column {} as magnitudes; use one of {}",
             spec.name, column.name, fmt::join(kForTables, ", "));
    }
}

}  // namespace

Model build_model(const ModelSpec& spec) {
    if (spec.input.elements() < 1) {
        fail(ErrorKind::kUsage, "model: samples of {} make no network", Builder::text(spec.input));
    }
    const LossSpec loss = loss_spec(spec.loss, spec.label_smoothing);
    check_outputs(spec);
    if (!(spec.dropout >= 0 && spec.dropout < 1)) {
        fail(ErrorKind::kUsage, "model.dropout: {} is not in [0, 1)", spec.dropout);
    }
    const ZooRow& row = row_of(spec.name);
    if (spec.flavor == "torchvision" && !row.torchvision) {
        fail(ErrorKind::kUsage, "model.flavor: torchvision has no {}; it can be lockstep or tf", spec.name);
    }
    check_reads_columns(spec);
    Builder builder(spec);
    if (spec.flavor == "tf" && row.tf_starts) {
        builder.set_rules(
            {.conv = WeightStart::kScaled, .hidden = WeightStart::kTruncatedHe, .output = WeightStart::kTruncated});
    }
    row.build(builder);
    Model model = std::move(builder).finish();
    model.loss = loss;
    return model;
}

}  // namespace lockstep

// A split, seen once: in data order, in pieces of B samples cut into V shards. Every sample counts once at any number
// of ranks, and training state is never touched.
#pragma once

#include <string>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/function_ref.hpp"
#include "data/dataset.hpp"
#include "data/loader.hpp"
#include "nn/network.hpp"
#include "train/metrics.hpp"

namespace lockstep {

/// What an evaluation works with; all of it outlives the call.
struct EvaluationContext {
    Communicator& comm;
    Backend& backend;
    Network& network;
    const float* weights;  // flat
    const Config& config;  // batch.size, batch.shards
};

/// Loss, accuracy, top-5 (more than 5 classes), AUC, precision and recall of class 1 (two classes); of a regression
/// loss and mse. `with_confusion`: of classes, how often each was taken for each, too. Collective; the same result on
/// all ranks. `step`, `epoch` and `split` of the result are the caller's to set.
EvalResult evaluate(const EvaluationContext& context, const Dataset& data, bool with_confusion = false);

/// Writes `index,label,class,p0,p1,…` (of a regression `index,target,prediction`), one row a sample in data order,
/// through `write` on rank 0; a label that nobody knows is an empty field. `with_names`: behind these the names of the
/// label's and the predicted class and of the sample's file, as far as the data know them. Collective.
void predict(const EvaluationContext& context, const Dataset& data, FunctionRef<void(const std::string&)> write,
             bool with_names = false);

/// Exact area under the ROC curve of scores against labels 0 and 1: (2 #{s+ > s-} + #{s+ = s-}) / (2 P N), in integers.
/// NaN where there are no positives or no negatives, or a score is NaN.
double area_under_curve(std::span<const float> scores, std::span<const int32_t> labels);

}  // namespace lockstep

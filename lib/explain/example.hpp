// Other trainers' rules on a model small enough for pencil and paper, in float64: two weights A and B, a worker's batch
// with mean m has loss m A B + lambda (A^2 + B^2) / 2. What a scheme does to a gradient shows in the second loss
// already.
#pragma once

#include <vector>

#include "config/config.hpp"
#include "explain/scheme.hpp"

namespace lockstep {

/// Batches of four inputs x = -1 … 14; worker w of W begins at batch floor(4 w / W) and goes round.
inline constexpr int kExampleSteps = 4;
inline constexpr int kExampleGpus = 2;            // of a worker, each with half of its batch
inline constexpr double kExampleRate = 1.0 / 16;  // the learning rate if none is set, and lambda

/// The optimizer of these "optimizer.key=value" settings. Not set: plain gradient descent at 1/16, and with rmsprop
/// tf_cnn_benchmarks' form (epsilon of 1 inside the root, mean square that starts at 1, momentum on the step).
Config::Optimizer example_optimizer(const std::vector<std::string>& sets);

/// losses[worker][step], each before its update. Optimizers: sgd, momentum, nesterov, adam as Lockstep has them,
/// rmsprop in tf_cnn_benchmarks' form (epsilon inside the root, mean square starts at 1, momentum on the step). kUsage
/// for others.
std::vector<std::vector<double>> run_example(const Scheme& scheme, int workers, int gpus,
                                             const Config::Optimizer& optimizer);

/// The mean over workers of each step's losses.
std::vector<double> mean_losses(const std::vector<std::vector<double>>& losses);

std::string example_text(const Scheme& scheme, const std::vector<std::vector<double>>& losses);
std::string example_json(const Scheme& scheme, int gpus, const Config::Optimizer& optimizer,
                         const std::vector<std::vector<double>>& losses);

}  // namespace lockstep

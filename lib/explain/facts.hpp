// What follows from a scheme's rules for a job: steps, samples read twice or not at all, the batch and learning rate
// that really act. Pure functions of small numbers; nothing is read or trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "data/data_facts.hpp"
#include "explain/scheme.hpp"

namespace lockstep {

/// The job, as its author means it for one machine.
struct Question {
    int64_t samples = 0;                         // N
    int64_t batch = 0;                           // B, as written in the script
    int64_t epochs = 1;                          // with `steps`: begun by these
    std::optional<int64_t> steps;                // written in place of epochs
    bool drops = false;                          // the short last batch is left out
    int workers = 1;                             // W
    int gpus = 1;                                // of each worker
    std::optional<int64_t> worker_batch;         // of all GPUs of a worker; not given: by the scheme, B or B / W
    bool shifted = false;                        // workers start at w/W where the scheme says that they all start at 0
    std::optional<Config::Optimizer> optimizer;  // known where there is a config
    std::optional<bool> batch_norm;              // whether the model has any; known where there is a model
    std::optional<int64_t> norm_batch;           // samples behind a statistic here; not known: the batch
};

/// The job of a config on such data. Where only their number is known, the shape is empty.
Question question_of(const Config& config, const DataFacts& data);

/// The course of an epoch under some rules.
struct Course {
    int64_t steps_per_epoch = 0;     // as the counter of steps, or where there are several each worker's, has it
    int64_t steps = 0;               // of all epochs
    int64_t samples_per_epoch = 0;   // read by all workers together
    int64_t duplicates = 0;          // of those: read before in the same epoch
    int64_t omitted = 0;             // of the data set: not read in an epoch
    int64_t effective_batch = 0;     // samples behind the updates of a round of all workers, of a full one
    int64_t batch_norm_samples = 0;  // behind a statistic
    double gradient_scale = 1;       // what the optimizer is given, over the mean gradient
    int optimizer_steps_per_batch = 1;
    double schedule_stretch = 1;  // how long the learning rate's schedule takes, over what was meant

    double passes_per_epoch(int64_t samples) const {
        return static_cast<double>(samples_per_epoch) / static_cast<double>(samples);
    }
    /// The learning rate of one plain step over the effective batch that goes as far, over the one written.
    double lr_factor() const { return gradient_scale * optimizer_steps_per_batch; }
};

struct Facts {
    const Scheme* scheme = nullptr;
    Question question;
    Reading reading{};           // of the scheme, at this number of workers
    int64_t worker_batch = 0;    // as written, or by the scheme
    int64_t worker_samples = 0;  // what a worker really has at most in a step: no more than its part of the data
    Course theirs;
    Course ours;
    std::vector<std::string> write;  // lines of a config that get what was meant
};

/// Throws kUsage where the job has no step under these rules, or a worker no sample, and where counts pass 64 bits.
Facts explain(const Scheme& scheme, const Question& question);

/// One line of the table: a fact under their rules, under Lockstep's, and why.
struct FactLine {
    std::string name, theirs, ours, reason;
};
std::vector<FactLine> fact_lines(const Facts& facts);

std::string facts_text(const Facts& facts);
/// One object on one line; `run`: the value of its last key, or "".
std::string facts_json(const Facts& facts, const std::string& run = "");

/// 3900000 -> "3,900,000".
std::string with_commas(int64_t value);

}  // namespace lockstep

// Why each fact is what it is, in a sentence, from the same rules that the numbers follow from.
#include <cmath>

#include "explain/facts.hpp"

namespace lockstep {
namespace {

std::string factor(double value) {
    return fmt::format("{:.6g}", value);
}

std::string reading_reason(const Facts& f) {
    const int workers = f.question.workers;
    const int64_t b = f.worker_samples;
    switch (f.reading) {
        case Reading::kWhole:
            return fmt::format(
                "each of {} workers goes over the whole data set in batches of {}; all their steps count", workers, b);
        case Reading::kSameSamples:
            return fmt::format("epochs are divided by {} workers of batch {}, each of which starts at sample 0",
                               workers, b);
        case Reading::kShifted:
            return fmt::format("{} workers of batch {}, worker w starts at w/{} of the data", workers, b, workers);
        case Reading::kPaddedParts:
            return fmt::format("each of {} workers reads its part, ceil(N/{}) samples, in batches of {}", workers,
                               workers, b);
        case Reading::kTrimmedParts:
            return fmt::format("each of {} workers reads its part, floor(N/{}) samples, in whole batches of {}",
                               workers, workers, b);
        case Reading::kDealt:
            break;
    }
    if (workers == 1) return fmt::format("one worker of batch {}", b);
    return fmt::format("one pipeline deals batches of {} to {} workers", b, workers);
}

std::string length_reason(const Facts& f) {
    if (f.question.steps && f.question.workers > 1) {
        if (f.scheme->batch_of_worker) return "of all workers together: what is written ends their common count";
        return "of each worker: what is written is not divided between them";
    }
    const bool wraps = f.scheme->wraps && f.theirs.steps != f.theirs.steps_per_epoch * f.question.epochs;
    return wraps && !f.question.steps ? "epochs run into each other: the last batch wraps" : "";
}

/// Why a step has as many samples as it has.
std::string batch_reason(const Facts& f) {
    const Course& a = f.theirs;
    const int64_t n = f.question.samples;
    if (f.worker_samples < f.worker_batch) {
        return fmt::format("a worker's batch of {} is more than it reads in an epoch: all {} in one step",
                           with_commas(f.worker_batch), with_commas(f.worker_samples));
    }
    if (f.scheme->wraps && a.effective_batch > n) {
        return fmt::format("a round of {} samples goes through the {} of the data {} times",
                           with_commas(a.effective_batch), with_commas(n),
                           factor(static_cast<double>(a.effective_batch) / static_cast<double>(n)));
    }
    if (a.effective_batch == f.ours.effective_batch) return "";
    return fmt::format("{} workers of batch {} each", f.question.workers, with_commas(f.worker_batch));
}

std::string duplicate_reason(const Facts& f) {
    switch (f.reading) {
        case Reading::kWhole:
            return fmt::format("nobody divides the data: every sample is read {} times", f.question.workers);
        case Reading::kSameSamples:
            return fmt::format("the shift ratio is 0: all {} workers read the same samples", f.question.workers);
        case Reading::kPaddedParts:
            return f.theirs.duplicates > 0 ? "the sampler makes parts equal by reading the first samples again" : "";
        default:
            return f.theirs.duplicates > 0 ? "there is no short last batch: it is filled from the next epoch" : "";
    }
}

std::string omission_reason(const Facts& f) {
    if (f.theirs.omitted == 0) return "";
    if (f.reading == Reading::kSameSamples) return "what the other workers' parts would have been, in this epoch";
    if (f.reading == Reading::kDealt) return "the short last batch is dropped, there and here";
    return "parts are cut to whole batches; which samples fall away changes with the shuffle";
}

std::string scale_reason(const Facts& f) {
    const Scheme& s = *f.scheme;
    const Question& q = f.question;
    if (f.theirs.gradient_scale != 1) {
        return fmt::format("the mean gradients of {} {} are added and not divided",
                           q.workers * (s.towers_sum ? q.gpus : 1), s.towers_sum ? "GPUs" : "workers");
    }
    if (q.workers == 1) return "";
    if (s.applying != Applying::kOnce) return "each update has one worker's mean gradient";
    if (s.clips_locally) return "the mean of gradients that were each clipped: shorter than the mean, clipped";
    return "the mean over workers of means over equal parts";
}

std::string application_reason(const Facts& f) {
    if (f.theirs.optimizer_steps_per_batch == 1) return "";
    const std::string state =
        f.question.optimizer ? fmt::format("its state ({}) ", f.question.optimizer->name) : "momentum and the like ";
    if (f.scheme->applying == Applying::kAsynchronously) {
        return fmt::format("workers update in turn, nobody waits: {}steps {} times, on gradients {} updates old", state,
                           f.question.workers, f.question.workers - 1);
    }
    return fmt::format("each worker updates the shared weights in turn: {}steps {} times", state, f.question.workers);
}

std::string rate_reason(const Facts& f) {
    const double k = f.theirs.lr_factor();
    if (k == 1) return "";
    if (f.scheme->batch_of_worker) {
        return fmt::format("{} updates at lr for {} samples: for plain SGD lr / {} was meant", factor(k),
                           with_commas(f.theirs.effective_batch), factor(k));
    }
    return fmt::format("for plain SGD {} times the step of one machine: lr / {} there is lr here", factor(k),
                       factor(k));
}

std::string stretch_reason(const Facts& f) {
    switch (f.question.workers == 1 ? Counting::kRight : f.scheme->counting) {
        case Counting::kEveryWorker:
            return fmt::format("the counter moves {} times in a round: decay and warm-up end {} times too soon",
                               f.question.workers, f.question.workers);
        case Counting::kStretched:
            return fmt::format("the counter moves once in a round but the schedule counts one worker's batches");
        case Counting::kRight:
            break;
    }
    return "";
}

std::string norm_reason(const Facts& f) {
    if (f.question.batch_norm && !*f.question.batch_norm) return "this model has no batch norm";
    if (f.theirs.batch_norm_samples == f.ours.batch_norm_samples) return "";
    if (f.ours.batch_norm_samples == f.ours.effective_batch) return "each GPU normalises by itself";
    return "each GPU, and here each shard, normalises by itself; batch_norm.scope = \"global\" takes the whole batch";
}

}  // namespace

std::string with_commas(int64_t value) {
    std::string digits = std::to_string(value);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    return digits;
}

std::vector<FactLine> fact_lines(const Facts& f) {
    const Course& a = f.theirs;
    const Course& b = f.ours;
    const int64_t n = f.question.samples;
    std::vector<FactLine> lines;
    const auto add = [&](const char* name, const std::string& theirs, const std::string& ours, std::string reason) {
        lines.push_back({name, theirs, ours, std::move(reason)});
    };
    const auto count = [&](const char* name, int64_t theirs, int64_t ours, std::string reason) {
        add(name, with_commas(theirs), with_commas(ours), std::move(reason));
    };
    count("steps per epoch", a.steps_per_epoch, b.steps_per_epoch, reading_reason(f));
    count("steps in all", a.steps, b.steps, length_reason(f));
    count("samples per epoch", a.samples_per_epoch, b.samples_per_epoch,
          fmt::format("{} of {}", with_commas(a.samples_per_epoch), with_commas(n)));
    add("passes per epoch", factor(a.passes_per_epoch(n)), factor(b.passes_per_epoch(n)), "");
    count("read again", a.duplicates, b.duplicates, duplicate_reason(f));
    count("left out", a.omitted, b.omitted, omission_reason(f));
    count("effective batch", a.effective_batch, b.effective_batch, batch_reason(f));
    add("gradient scale", factor(a.gradient_scale), factor(b.gradient_scale), scale_reason(f));
    add("optimizer steps", std::to_string(a.optimizer_steps_per_batch), std::to_string(b.optimizer_steps_per_batch),
        application_reason(f));
    if (f.question.optimizer) {
        const double lr = f.question.optimizer->lr;
        add("effective lr", factor(lr * a.lr_factor()), factor(lr), rate_reason(f));
    } else {
        add("effective lr", factor(a.lr_factor()) + " lr", "1 lr", rate_reason(f));
    }
    add("schedule stretch", factor(a.schedule_stretch), factor(b.schedule_stretch), stretch_reason(f));
    if (f.question.batch_norm.value_or(true)) {
        count("batch-norm batch", a.batch_norm_samples, b.batch_norm_samples, norm_reason(f));
    } else {
        add("batch-norm batch", "-", "-", norm_reason(f));
    }
    return lines;
}

}  // namespace lockstep

#include "explain/facts.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/json_number.hpp"

namespace lockstep {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

int64_t product(int64_t a, int64_t b) {
    int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result))
        fail(ErrorKind::kUsage, "explain: {} x {} is beyond 64 bits: no such job can be counted", a, b);
    return result;
}

/// One worker that goes over everything: what was meant.
Course course_of_one(const Question& q) {
    Course course;
    course.steps_per_epoch = q.drops ? q.samples / q.batch : ceil_div(q.samples, q.batch);
    if (course.steps_per_epoch == 0) {
        fail(ErrorKind::kUsage, "explain: batch.last = \"drop\" leaves no step: {} samples are no batch of {}",
             q.samples, q.batch);
    }
    course.steps = q.steps.value_or(product(q.epochs, course.steps_per_epoch));
    course.samples_per_epoch = q.drops ? course.steps_per_epoch * q.batch : q.samples;
    course.omitted = q.samples - course.samples_per_epoch;
    course.effective_batch = std::min(q.batch, q.samples);
    course.batch_norm_samples = std::min(q.norm_batch.value_or(q.batch), q.samples);
    return course;
}

class Derivation {
  public:
    Derivation(const Scheme& scheme, const Question& question)
        : scheme_(scheme), q_(question), workers_(question.workers) {
        facts_.scheme = &scheme;
        facts_.question = question;
        facts_.reading = scheme.reading_of(question.workers);
        if (facts_.reading == Reading::kSameSamples && question.shifted) facts_.reading = Reading::kShifted;
        facts_.worker_batch = q_.worker_batch.value_or(scheme.batch_of_worker ? q_.batch : q_.batch / workers_);
        check();
    }

    Facts derive() && {
        facts_.ours = course_of_one(q_);
        Course& c = facts_.theirs;
        facts_.worker_samples = std::min(facts_.worker_batch, most_samples());
        c.effective_batch = product(facts_.worker_samples, workers_);
        c.batch_norm_samples = std::max<int64_t>(1, facts_.worker_samples / q_.gpus);
        c.gradient_scale = static_cast<double>(scheme_.sums ? workers_ : 1) * (scheme_.towers_sum ? q_.gpus : 1);
        c.optimizer_steps_per_batch = scheme_.applications(q_.workers);
        if (scheme_.counting == Counting::kEveryWorker) c.schedule_stretch = 1.0 / static_cast<double>(workers_);
        if (scheme_.counting == Counting::kStretched) c.schedule_stretch = static_cast<double>(workers_);
        count_samples(c);
        if (q_.steps) c.steps = *q_.steps;
        write();
        return std::move(facts_);
    }

  private:
    /// What a worker has to fill a batch from: no more than its part of an epoch, where epochs do not run into another.
    int64_t most_samples() const {
        if (scheme_.wraps) return facts_.worker_batch;
        switch (facts_.reading) {
            case Reading::kPaddedParts:
                return ceil_div(q_.samples, workers_);
            case Reading::kTrimmedParts:
                return q_.samples / workers_;
            default:
                return q_.samples;
        }
    }

    void check() const {
        if (q_.samples < 1 || q_.batch < 1 || q_.epochs < 1 || workers_ < 1 || q_.gpus < 1) {
            fail(ErrorKind::kUsage,
                 "explain: {} samples, batch {}, {} epochs, {} workers of {} GPUs: each must be at least 1", q_.samples,
                 q_.batch, q_.epochs, workers_, q_.gpus);
        }
        if (facts_.worker_batch < q_.gpus) {
            fail(ErrorKind::kUsage, "explain: a {} of {} leaves {} workers of {} GPU{} without a sample each",
                 q_.worker_batch ? "worker's batch" : "batch", q_.worker_batch.value_or(q_.batch), workers_, q_.gpus,
                 q_.gpus == 1 ? "" : "s");
        }
    }

    void count_samples(Course& c) const {
        const int64_t b = facts_.worker_batch;
        const int64_t n = q_.samples;
        const int64_t round = product(b, workers_);
        int64_t part = ceil_div(n, workers_);  // of a worker's epoch
        switch (facts_.reading) {
            case Reading::kWhole:
                // Each worker's steps count: the counter of steps is shared.
                c.steps_per_epoch = product(ceil_div(n, b), workers_);
                c.steps = product(c.steps_per_epoch, q_.epochs);
                c.samples_per_epoch = product(n, workers_);
                break;
            case Reading::kTrimmedParts:
                part = n / workers_;
                c.steps_per_epoch = part / b;
                c.steps = product(c.steps_per_epoch, q_.epochs);
                c.samples_per_epoch = c.steps_per_epoch * round;
                c.omitted = n - c.samples_per_epoch;
                if (c.steps_per_epoch == 0) {
                    fail(ErrorKind::kUsage,
                         "explain: drop_last leaves no step: a worker's part of {} samples is shorter than its batch "
                         "of {}",
                         part, b);
                }
                return;
            case Reading::kPaddedParts:
                c.steps_per_epoch = ceil_div(part, b);
                c.steps = product(c.steps_per_epoch, q_.epochs);
                c.samples_per_epoch = part * workers_;
                break;
            case Reading::kDealt:
            case Reading::kShifted:
            case Reading::kSameSamples:
                if (!scheme_.wraps && q_.drops) {  // one worker's batches are cut as they are here
                    c.steps_per_epoch = n / round;
                    c.samples_per_epoch = c.steps_per_epoch * round;
                    c.omitted = n - c.samples_per_epoch;
                } else {
                    c.steps_per_epoch = ceil_div(n, round);
                    c.samples_per_epoch = scheme_.wraps ? product(c.steps_per_epoch, round) : n;
                }
                c.steps =
                    scheme_.wraps ? ceil_div(product(n, q_.epochs), round) : product(c.steps_per_epoch, q_.epochs);
                if (facts_.reading == Reading::kSameSamples)
                    c.omitted = std::max<int64_t>(0, n - c.steps_per_epoch * b);
                break;
        }
        c.duplicates = c.samples_per_epoch - (n - c.omitted);
    }

    void write() {
        facts_.write.push_back(fmt::format("batch.size = {}", q_.batch));
        if (q_.optimizer) facts_.write.push_back(fmt::format("optimizer.lr = {}", json_number(q_.optimizer->lr)));
        facts_.write.push_back(q_.steps ? fmt::format("train.steps = {}", *q_.steps)
                                        : fmt::format("train.epochs = {}", q_.epochs));
        if (q_.batch_norm.value_or(false)) facts_.write.emplace_back("batch_norm.scope = \"global\"");
        if (scheme_.clips_locally && q_.optimizer && q_.optimizer->clip_norm > 0) {
            facts_.write.push_back(fmt::format("optimizer.clip_norm = {}", json_number(q_.optimizer->clip_norm)));
        }
    }

    const Scheme& scheme_;
    const Question& q_;
    int64_t workers_;
    Facts facts_;
};

}  // namespace

Facts explain(const Scheme& scheme, const Question& question) {
    return Derivation(scheme, question).derive();
}

}  // namespace lockstep

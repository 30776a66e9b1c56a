// What other trainers' rules make of a job: steps, samples read twice or never, the batch behind an update; against
// public reports and jobs that can be counted on fingers.
#include "explain/facts.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "explain/worker_rules.hpp"

namespace lockstep {
namespace {

Question job(int64_t samples, int64_t batch, int workers, int64_t epochs = 1) {
    Question q;
    q.samples = samples;
    q.batch = batch;
    q.workers = workers;
    q.epochs = epochs;
    return q;
}

Course theirs(const char* scheme, const Question& q) {
    return explain(scheme_named(scheme), q).theirs;
}

TEST_CASE("an estimator's epoch costs W times the steps, since every worker reads everything") {
    CHECK(theirs("estimator", job(650000, 128, 1)).steps_per_epoch == 5079);
    CHECK(theirs("estimator", job(650000, 128, 5)).steps_per_epoch == 25395);
    const Facts six = explain(scheme_named("estimator"), job(650000, 128, 6));
    CHECK(six.theirs.steps_per_epoch == 30474);
    CHECK(six.theirs.samples_per_epoch == 3'900'000);
    CHECK(six.theirs.passes_per_epoch(650000) == 6.0);
    CHECK(six.theirs.duplicates == 3'250'000);
    CHECK(six.theirs.omitted == 0);
    CHECK(six.theirs.effective_batch == 768);
    CHECK(six.theirs.gradient_scale == 1.0);
    CHECK(six.theirs.optimizer_steps_per_batch == 6);
    CHECK(six.theirs.lr_factor() == 6.0);
    CHECK(six.theirs.schedule_stretch == Approx(1.0 / 6));
    CHECK(six.ours.steps_per_epoch == 5079);
    CHECK(six.ours.samples_per_epoch == 650000);
}

TEST_CASE("the second report: two workers of 32 that read the same images and both update") {
    Question q = job(1'281'167, 64, 2, 5);
    q.batch_norm = true;
    const Facts f = explain(scheme_named("tf-distributed-replicated"), q);
    CHECK(f.worker_batch == 32);
    CHECK(f.theirs.steps_per_epoch == 20019);
    CHECK(f.theirs.effective_batch == 64);
    CHECK(f.theirs.optimizer_steps_per_batch == 2);
    CHECK(f.theirs.lr_factor() == 2.0);
    CHECK(f.theirs.batch_norm_samples == 32);
    CHECK(f.ours.batch_norm_samples == 64);
    CHECK(f.theirs.omitted == 1'281'167 - 20019 * 32);
    CHECK(f.theirs.duplicates == 20019 * 32);
    CHECK(f.write.back() == "batch_norm.scope = \"global\"");
    q.shifted = true;  // as it was meant
    const Course meant = theirs("tf-distributed-replicated", q);
    CHECK(meant.omitted == 0);
    CHECK(meant.duplicates == 20019 * 64 - 1'281'167);
}

TEST_CASE("what each mode does to a gradient") {
    struct Row {
        const char* scheme;
        double gradient_scale;
        int applications;
        double stretch;
    };
    // Three workers of two GPUs each.
    for (const Row& row : std::vector<Row>{{"tf-parameter-server", 1, 3, 1},
                                           {"tf-distributed-replicated", 1, 3, 1},
                                           {"tf-distributed-all-reduce", 6, 1, 3},
                                           {"tf-collective-all-reduce", 6, 1, 1},
                                           {"horovod-sum", 3, 1, 1},
                                           {"horovod-average", 1, 1, 1},
                                           {"ddp", 1, 1, 1},
                                           {"ddp-drop-last", 1, 1, 1},
                                           {"local-clip", 1, 1, 1}}) {
        CAPTURE(row.scheme);
        Question q = job(6000, 60, 3);
        q.gpus = 2;
        const Course c = theirs(row.scheme, q);
        CHECK(c.gradient_scale == row.gradient_scale);
        CHECK(c.optimizer_steps_per_batch == row.applications);
        CHECK(c.schedule_stretch == row.stretch);
        CHECK(c.effective_batch == 60);
        CHECK(c.batch_norm_samples == 10);
    }
    CHECK(theirs("tf-replicated", job(6000, 60, 4)).gradient_scale == 4);  // GPUs of one machine
}

TEST_CASE("one worker is one machine under every scheme that leaves nothing out") {
    for (const Scheme& scheme : schemes()) {
        CAPTURE(scheme.name);
        const Course c = explain(scheme, job(6000, 60, 1)).theirs;
        CHECK(c.steps_per_epoch == 100);
        CHECK(c.samples_per_epoch == 6000);
        CHECK(c.duplicates == 0);
        CHECK(c.omitted == 0);
        CHECK(c.lr_factor() == 1);
        CHECK(c.schedule_stretch == 1);
    }
}

TEST_CASE("batches that wrap run from one epoch into the next") {
    // Three epochs of three samples in batches of two: five batches there, two an epoch here.
    const Facts f = explain(scheme_named("tf-parameter-server"), job(3, 2, 1, 3));
    CHECK(f.theirs.steps == 5);
    CHECK(f.ours.steps == 6);
    CHECK(f.ours.steps_per_epoch == 2);
}

TEST_CASE("parts are made equal by repeating samples, or by leaving some out") {
    const Course padded = theirs("ddp", job(1003, 64, 4));
    CHECK(padded.steps_per_epoch == 16);  // of parts of 251
    CHECK(padded.samples_per_epoch == 1004);
    CHECK(padded.duplicates == 1);
    CHECK(padded.omitted == 0);
    const Course trimmed = theirs("ddp-drop-last", job(1003, 64, 4));
    CHECK(trimmed.steps_per_epoch == 15);  // of parts of 250
    CHECK(trimmed.samples_per_epoch == 960);
    CHECK(trimmed.duplicates == 0);
    CHECK(trimmed.omitted == 43);
}

TEST_CASE("samples read, read again and left out add up to the data set under every scheme") {
    for (const Scheme& scheme : schemes()) {
        for (const int64_t samples : {1003, 1024, 77}) {
            for (const int workers : {1, 2, 3, 5}) {
                CAPTURE(scheme.name, samples, workers);
                const Course c = explain(scheme, job(samples, 15, workers)).theirs;
                CHECK(c.samples_per_epoch - c.duplicates + c.omitted == samples);
                CHECK(c.duplicates >= 0);
                CHECK(c.omitted >= 0);
            }
        }
    }
}

TEST_CASE("every scheme's course of a job that can be counted on fingers: ten samples, two workers, three epochs") {
    struct Row {
        const char* scheme;
        int64_t steps_per_epoch, steps, samples, again, omitted, effective_batch, norm_batch;
        double scale;
        int applications;
    };
    // Batch 4. Of estimator every worker has 4 at a time and all ten samples; of the others 2 at a time. Those that
    // wrap share 30 samples in rounds of 4; those that begin at 0 see the first 2 x 3 samples twice.
    for (const Row& row : std::vector<Row>{{"estimator", 6, 18, 20, 10, 0, 8, 4, 1, 2},
                                           {"tf-parameter-server", 3, 8, 12, 6, 4, 4, 2, 1, 2},
                                           {"tf-replicated", 3, 8, 12, 2, 0, 4, 2, 2, 1},
                                           {"tf-distributed-replicated", 3, 8, 12, 6, 4, 4, 2, 1, 2},
                                           {"tf-distributed-all-reduce", 3, 8, 12, 6, 4, 4, 2, 2, 1},
                                           {"tf-collective-all-reduce", 3, 8, 12, 6, 4, 4, 2, 2, 1},
                                           {"horovod-sum", 3, 9, 10, 0, 0, 4, 2, 2, 1},
                                           {"horovod-average", 3, 9, 10, 0, 0, 4, 2, 1, 1},
                                           {"ddp", 3, 9, 10, 0, 0, 4, 2, 1, 1},
                                           {"ddp-drop-last", 2, 6, 8, 0, 2, 4, 2, 1, 1},
                                           {"local-clip", 3, 9, 10, 0, 0, 4, 2, 1, 1}}) {
        CAPTURE(row.scheme);
        const Course c = theirs(row.scheme, job(10, 4, 2, 3));
        CHECK(c.steps_per_epoch == row.steps_per_epoch);
        CHECK(c.steps == row.steps);
        CHECK(c.samples_per_epoch == row.samples);
        CHECK(c.duplicates == row.again);
        CHECK(c.omitted == row.omitted);
        CHECK(c.effective_batch == row.effective_batch);
        CHECK(c.batch_norm_samples == row.norm_batch);
        CHECK(c.gradient_scale == row.scale);
        CHECK(c.optimizer_steps_per_batch == row.applications);
    }
    // Three workers: parts of ceil(10/3) = 4, or of floor(10/3) = 3, cut to one batch of 2.
    CHECK(theirs("ddp", job(10, 6, 3)).duplicates == 2);
    CHECK(theirs("ddp", job(10, 6, 3)).steps_per_epoch == 2);
    CHECK(theirs("ddp-drop-last", job(10, 6, 3)).steps_per_epoch == 1);
    CHECK(theirs("ddp-drop-last", job(10, 6, 3)).omitted == 4);
    Question shifted = job(10, 4, 2);  // 12 places for 10 samples
    shifted.shifted = true;
    CHECK(theirs("tf-parameter-server", shifted).duplicates == 2);
    CHECK(theirs("tf-parameter-server", shifted).omitted == 0);
}

TEST_CASE("a job in steps has as many there and here, and says how they were counted") {
    Question q = job(60000, 64, 2);
    q.steps = 100;
    const auto reason = [&](const char* scheme) {
        const Facts f = explain(scheme_named(scheme), q);
        CHECK(f.theirs.steps == 100);
        CHECK(f.ours.steps == 100);
        CHECK(f.write[1] == "train.steps = 100");
        for (const FactLine& line : fact_lines(f)) {
            if (line.name == "steps in all") return line.reason;
        }
        return std::string();
    };
    CHECK(reason("estimator") == "of all workers together: what is written ends their common count");
    CHECK(reason("tf-distributed-replicated") == "of each worker: what is written is not divided between them");
    CHECK_THAT(facts_text(explain(scheme_named("ddp"), q)), Catch::Contains("batch 64, 100 steps, 2 workers"));
}

TEST_CASE("a config's dropped last batch is left out here, and under the rules of one worker") {
    Config config;
    config.batch.size = 64;
    config.batch.last = "drop";
    config.train.epochs = 2;
    Question q = question_of(config, DataFacts{.samples = 1003, .shape = {5, 5, 1}, .classes = 3});
    const Facts one = explain(scheme_named("ddp"), q);
    for (const Course& course : {one.ours, one.theirs}) {
        CHECK(course.steps_per_epoch == 15);
        CHECK(course.steps == 30);
        CHECK(course.samples_per_epoch == 960);
        CHECK(course.omitted == 43);
        CHECK(course.duplicates == 0);
    }
    q.workers = 4;
    CHECK(explain(scheme_named("ddp"), q).theirs.steps_per_epoch == 16);  // its own rule
    q.samples = 63;
    CHECK_THROWS_WITH(explain(scheme_named("ddp"), q), Catch::Contains("63 samples are no batch of 64"));
}

TEST_CASE("counts beyond 64 bits are refused with their factors") {
    const int64_t large = int64_t{1} << 40;
    CHECK_THROWS_WITH(theirs("estimator", job(large, 1, 4096, 1'000'000)),
                      Catch::Contains("4503599627370496 x 1000000 is beyond 64 bits"));
    CHECK(theirs("estimator", job(large, 1, 4096)).steps == int64_t{1} << 52);
    CHECK(theirs("ddp", job(large, 3, 1, 1'000'000)).steps == (large / 3 + 1) * 1'000'000);
}

TEST_CASE("a job without a step or a sample for a worker is refused with its numbers") {
    CHECK_THROWS_WITH(theirs("ddp", job(100, 4, 5)), Catch::Contains("a batch of 4 leaves 5 workers"));
    CHECK_THROWS_WITH(theirs("ddp-drop-last", job(9, 10, 2)), Catch::Contains("part of 4 samples"));
    CHECK_THROWS_WITH(theirs("ddp", job(0, 4, 1)), Catch::Contains("0 samples"));
    CHECK_THROWS_WITH(scheme_named("hovorod-sum"), Catch::Contains("did you mean horovod-sum?"));
}

TEST_CASE("a batch has no more samples than there are to fill it from, there and here") {
    const auto asked = [](const char* scheme, int workers, int64_t worker_batch) {
        Question q = job(1003, 64, workers);
        q.worker_batch = worker_batch;
        return explain(scheme_named(scheme), q);
    };
    const auto batch_line = [](const Facts& f) {
        for (const FactLine& line : fact_lines(f)) {
            if (line.name == "effective batch") return line.reason;
        }
        return std::string();
    };
    // A part of DistributedSampler's, padded: ceil(1003 / 4).
    const Facts ddp = asked("ddp", 4, 5000);
    CHECK(ddp.theirs.effective_batch == 1004);
    CHECK(ddp.theirs.batch_norm_samples == 251);
    CHECK(ddp.theirs.steps_per_epoch == 1);
    CHECK(ddp.theirs.duplicates == 1);
    CHECK(ddp.ours.effective_batch == 64);
    CHECK(batch_line(ddp) == "a worker's batch of 5,000 is more than it reads in an epoch: all 251 in one step");
    // One that just fits is as it is.
    CHECK(asked("ddp", 4, 251).theirs.effective_batch == 1004);
    CHECK(batch_line(asked("ddp", 4, 251)) == "4 workers of batch 251 each");
    // Each of estimator's workers has everything.
    const Facts estimator = asked("estimator", 4, 5000);
    CHECK(estimator.theirs.effective_batch == 4012);
    CHECK(estimator.theirs.steps_per_epoch == 4);
    CHECK(scheme_rules(estimator).batch == 1003);
    // Batches that wrap go on into the next epochs: as many samples as written.
    const Facts wraps = asked("tf-collective-all-reduce", 4, 5000);
    CHECK(wraps.theirs.effective_batch == 20000);
    CHECK(wraps.theirs.samples_per_epoch == 20000);
    CHECK_THAT(batch_line(wraps), Catch::Contains("goes through the 1,003 of the data 19.9402 times"));
    // Whole batches only: no step at all.
    CHECK_THROWS_WITH(asked("ddp-drop-last", 4, 5000),
                      Catch::Contains("part of 250 samples is shorter than its batch"));
    // Lockstep's own batch, too.
    const Facts large = explain(scheme_named("ddp"), job(100, 1000, 2));
    CHECK(large.ours.effective_batch == 100);
    CHECK(large.theirs.effective_batch == 100);
    CHECK(large.ours.batch_norm_samples == 100);
    CHECK_THROWS_WITH(asked("ddp", 2, 0), Catch::Contains("a worker's batch of 0 leaves 2 workers"));
}

TEST_CASE("the JSON has the facts of both sides and a reason for whatever differs") {
    const auto json = nlohmann::json::parse(facts_json(explain(scheme_named("estimator"), job(650000, 128, 6))));
    CHECK(json["scheme"] == "estimator");
    CHECK(json["workers"] == 6);
    CHECK(json["samples"] == 650000);
    CHECK(json["batch"] == 128);
    CHECK(json["steps_per_epoch"] == 30474);
    CHECK(json["passes_per_epoch"] == 6.0);
    CHECK(json["gradient_scale"] == 1.0);
    CHECK(json["optimizer_steps_per_batch"] == 6);
    CHECK(json["lockstep"]["steps_per_epoch"] == 5079);
    CHECK(json["effective_lr"].is_null());
    CHECK(json["reasons"].size() >= 5);
    CHECK_FALSE(json.contains("run"));
    Config config;
    config.batch.size = 64;
    config.train.epochs = 2;
    config.optimizer.lr = 0.01;
    Question q = question_of(config, DataFacts{.samples = 1000, .shape = {5, 5, 1}, .classes = 3});
    q.workers = 2;
    const auto known = nlohmann::json::parse(facts_json(explain(scheme_named("horovod-sum"), q), "{\"a\":1}"));
    CHECK(known["effective_lr"] == 0.02);
    CHECK(known["batch_norm_samples"].is_null());  // an mlp has none
    CHECK(known["lockstep"]["steps"] == 32);
    CHECK(known["run"]["a"] == 1);
}

TEST_CASE("every scheme's JSON has the same keys") {
    const auto keys = [](const Scheme& scheme) {
        std::vector<std::string> names;
        const auto json = nlohmann::ordered_json::parse(facts_json(explain(scheme, job(1003, 60, 3, 2))));
        for (const auto& [name, value] : json.items()) names.push_back(name);
        return names;
    };
    for (const Scheme& scheme : schemes()) CHECK(keys(scheme) == keys(schemes().front()));
}

TEST_CASE("every line of the table on which the two differ has its reason") {
    for (const Scheme& scheme : schemes()) {
        const Facts facts = explain(scheme, job(1003, 60, 3, 2));
        for (const FactLine& line : fact_lines(facts)) {
            CAPTURE(scheme.name, line.name);
            if (line.name != "steps in all" && line.name != "passes per epoch" && line.theirs != line.ours)
                CHECK_FALSE(line.reason.empty());
        }
    }
}

}  // namespace
}  // namespace lockstep

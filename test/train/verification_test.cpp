// `verify` finds a difference between worlds where there is one, and only there; and tells it.
#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "comm/thread_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"
#include "train/point.hpp"
#include "train/verification.hpp"
#include "train/verification_report.hpp"

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;

namespace {

Job small_job() {
    Job job;
    job.samples = 150;
    job.batch = 40;
    return job;
}

/// A data set of which every sample is another one from a certain reading on.
class Changing : public Dataset {
  public:
    Changing(const Dataset& data, int from)
        : data_(data), from_(from), readings_(static_cast<std::size_t>(data.size())) {}
    int64_t size() const override { return data_.size(); }
    SampleShape shape() const override { return data_.shape(); }
    int classes() const override { return data_.classes(); }
    int32_t label(int64_t i) const override { return data_.label(i); }
    std::string fingerprint() const override { return data_.fingerprint(); }
    int32_t read(int64_t i, std::span<float> pixels) const override {
        const int32_t label = data_.read(i, pixels);
        if (readings_[static_cast<std::size_t>(i)]++ >= from_) pixels[0] += 0.25F;
        return label;
    }

  private:
    const Dataset& data_;
    int from_;
    mutable std::vector<std::atomic<int>> readings_;
};

/// On ranks that are threads; what rank 0 found, which must be what all found.
Verification verified(int ranks, const LoadedConfig& loaded, const VerifyOptions& options) {
    set_log(LogLevel::kQuiet, false);
    const DataSplits data = open_data(loaded.config);
    std::vector<Verification> found(static_cast<std::size_t>(ranks));
    run_thread_world(ranks, [&](Communicator& comm) {
        found[static_cast<std::size_t>(comm.rank())] = verify_on(comm, loaded, data, options);
    });
    for (const Verification& other : found) {
        REQUIRE(departure_line(other) == departure_line(found.front()));
        REQUIRE(other.difference.has_value() == found.front().difference.has_value());
        if (other.difference) REQUIRE(other.difference->element == found.front().difference->element);
    }
    return found.front();
}

}  // namespace

TEST_CASE("worlds of every size hold the same bits after every step") {
    Job job = small_job();
    job.optimizer = "adam";
    VerifyOptions options;
    options.steps = 5;
    const Verification found = verified(3, config_of(job), options);
    CHECK_FALSE(found.difference);
    CHECK(found.steps == 5);
    REQUIRE(found.worlds.size() == 3);
    for (const WorldResult& world : found.worlds) {
        CHECK(world.steps == 5);
        CHECK(world.samples == 150 + 40);  // 40, 40, 40, 30, 40
    }
    CHECK_THAT(verification_text(found), Catch::Contains("equal: 5 steps in 3 worlds"));
}

TEST_CASE("a planted bit is found at its step, with tensor, element and both values") {
    struct Case {
        int ranks;
        std::vector<int> worlds;
        Fault fault;
    };
    // Side by side with the reference, in a later round, and as threads.
    for (const Case& c : {Case{3, {1, 2}, {1, 2, 0}}, Case{2, {1, 2}, {0, 3, 31}}, Case{1, {1, 3}, {2, 1, 22}},
                          Case{2, {2, 1}, {0, 4, 12}}}) {
        Job job = small_job();
        VerifyOptions options;
        options.worlds = c.worlds;
        options.steps = 4;
        options.fault = c.fault;
        const Verification found = verified(c.ranks, config_of(job), options);
        REQUIRE(found.difference);
        const WorldDifference& d = *found.difference;
        CHECK(d.departure.step == c.fault.step);
        CHECK(d.departure.rank == c.fault.rank);
        CHECK(d.world == 1);
        CHECK(d.name == "fc1.weight");
        REQUIRE(d.element);
        CHECK(d.element->element == 0);
        CHECK(d.element->elements == 1);
        CHECK((d.element->reference ^ d.element->own) == uint64_t{1} << c.fault.bit);
        CHECK_FALSE(d.reference_strayed);
        CHECK(found.worlds[1].steps == c.fault.step);  // it stops there, the reference goes on
        CHECK(found.worlds[0].steps == 4);
        CHECK_THAT(verification_text(found), Catch::Contains("differ at step " + std::to_string(c.fault.step) + ":") &&
                                                 Catch::Contains("fc1.weight[0, 0]"));
        const json document = json::parse(verification_json(found));
        CHECK(document.at("equal") == false);
        CHECK(document.at("difference").at("step") == c.fault.step);
        CHECK(document.at("difference").at("ulp").get<uint64_t>() > 0);
    }
}

TEST_CASE("twin: ranks that add in another order are found out, and told why") {
    Job job = small_job();
    LoadedConfig loaded = config_of(job);
    loaded.config.reduce.algorithm = "native";
    VerifyOptions options;
    options.worlds = {1, 3};
    options.steps = 3;
    const Verification found = verified(3, loaded, options);
    REQUIRE(found.difference);
    CHECK_THAT(verification_text(found), Catch::Contains("promises equal bits at an equal number of ranks only"));
    options.worlds = {3};
    CHECK_FALSE(verified(3, loaded, options).difference);
}

TEST_CASE("twin: a rank that sees other pixels is found out by the loss") {
    const LoadedConfig loaded = config_of(small_job());
    set_log(LogLevel::kQuiet, false);
    VerifyOptions options;
    options.worlds = {1, 2};
    options.steps = 3;
    run_thread_world(3, [&](Communicator& comm) {
        DataSplits clean = open_data(loaded.config);
        DataSplits data;
        data.train = std::make_unique<Changing>(*clean.train, comm.rank() == 2 ? 0 : 1000);
        const Verification found = verify_on(comm, loaded, data, options);
        if (!found.difference || found.difference->name != "loss" || found.difference->departure.step != 1) {
            fail(ErrorKind::kRuntime, "not found: {}", departure_line(found));
        }
    });
}

TEST_CASE("a reference that does not repeat itself is said to have strayed") {
    Job job = small_job();
    job.samples = 1000;  // every sample is read once at most in a world
    const LoadedConfig loaded = config_of(job);
    set_log(LogLevel::kQuiet, false);
    VerifyOptions options;
    options.worlds = {1, 1};
    options.steps = 2;
    const DataSplits clean = open_data(loaded.config);
    DataSplits data;
    data.train = std::make_unique<Changing>(*clean.train, 1);
    const auto alone = make_single_communicator();
    const Verification found = verify_on(*alone, loaded, data, options);
    REQUIRE(found.difference);
    CHECK(found.difference->departure.step == 1);
    CHECK(found.difference->reference_strayed);
    CHECK_THAT(verification_text(found), Catch::Contains("did not repeat itself"));
}

TEST_CASE("differing indices, a step that could not be done and numbers that are none can be told") {
    Verification v;
    v.steps = 9;
    v.worlds.resize(2);
    v.worlds[0].cast.world = 2;
    v.worlds[1].cast.world = 3;
    v.worlds[1].departure = Departure{4, 1, {StatePlace::Kind::kIndices, 5}, ""};
    v.difference = WorldDifference{};
    WorldDifference& d = *v.difference;
    d.world = 1;
    d.departure = *v.worlds[1].departure;
    d.name = "indices of shard 5";
    d.width = 8;
    d.element = ElementDifference{2, 1002, 17, 3};
    d.elements = 12;
    CHECK_THAT(verification_text(v), Catch::Contains("differ at step 4: world 3, rank 1: indices of shard 5[2]\n") &&
                                         Catch::Contains("world 2              1002\n") &&
                                         Catch::Contains("3 of 12 elements differ\n"));
    CHECK(json::parse(verification_json(v)).at("difference").at("value") == 17);
    d.name = "fc1.weight";
    d.shape = {3, 4};
    d.width = 4;
    d.element = ElementDifference{7, 0x7fc00000U, 0xff800000U, 1};
    CHECK_THAT(verification_text(v), Catch::Contains("fc1.weight[1, 3]") && Catch::Contains("NaN  0x7fc00000") &&
                                         Catch::Contains("-inf  0xff800000") &&
                                         Catch::Contains("1 of 12 elements differs"));
    CHECK(json::parse(verification_json(v)).at("difference").at("ulp").is_null());
    CHECK(json::parse(verification_json(v)).at("difference").at("value").is_null());
    d.element.reset();
    d.departure.failure = "step 4: non-finite";
    CHECK_THAT(verification_text(v), Catch::Contains("world 2 did that step, world 3 could not: step 4: non-finite"));
    CHECK(json::parse(verification_json(v)).at("difference").at("failure") == "step 4: non-finite");
    // Several worlds of one size are told apart by their rows.
    v.worlds[0].cast.world = 3;
    CHECK(departure_line(v) == "step 4: world 3 (row 2) differs from world 3 (row 1) in fc1.weight");
}

TEST_CASE("a config that cannot be verified is refused on all ranks alike") {
    const LoadedConfig loaded = config_of(small_job());
    const auto refusal = [&](const VerifyOptions& options) -> std::string {
        try {
            verified(2, loaded, options);
        } catch (const SharedError& e) {
            return e.kind() == ErrorKind::kUsage ? e.what() : "another kind";
        }
        return "";
    };
    CHECK_THAT(refusal({{1, 2}, 0, std::nullopt}), Catch::Contains("--steps 0"));
    CHECK_THAT(refusal({{1, 2}, 5, Fault{2, 1, 1}}), Catch::Contains("no rank 2 in a world of 2"));
    CHECK_THAT(refusal({{1, 2}, 5, Fault{0, 6, 1}}), Catch::Contains("step 6 is never reached"));
}

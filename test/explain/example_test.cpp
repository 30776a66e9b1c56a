// The two-weight example against the losses that the other systems' own programs give, and against a pencil.
#include "explain/example.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace lockstep {
namespace {

struct Case {
    const char* scheme;
    int workers;
    const char* optimizer;
    int worker;  // -1: the mean over workers
    std::vector<double> losses;
};

std::vector<std::vector<double>> losses_of(const char* scheme, int workers, const char* optimizer) {
    return run_example(scheme_named(scheme), workers, kExampleGpus,
                       example_optimizer({std::string("optimizer.name=").append(optimizer)}));
}

// What tf_cnn_benchmarks reports for this model, and what the mean gradient gives.
const std::vector<Case> kOracle = {
    {"tf-parameter-server", 1, "sgd", 0, {1.15625, 8.38563776016, 5.53226187293, -9.5854835149}},
    {"tf-replicated", 1, "sgd", 0, {1.15625, 7.6387424469, -2.59694984125, -35.2715042346}},
    {"tf-distributed-replicated", 2, "sgd", 0, {1.15625, -0.786062240601, -21.5068398969, -76.6849449348}},
    {"tf-distributed-replicated", 2, "sgd", 1, {17.15625, -2.2968044281, -1.11492606567, -27.3599247402}},
    {"tf-distributed-all-reduce", 2, "sgd", -1, {9.15625, -9.0046005249, -47.4593700673, -403.742654158}},
    {"tf-parameter-server", 1, "nesterov", 0, {1.15625, 7.71236471653, -2.52466576228, -36.7086006412}},
    {"tf-replicated", 1, "nesterov", 0, {1.15625, 6.35409753799, -10.9491106578, -171.103948007}},
    {"tf-parameter-server", 1, "rmsprop", 0, {1.15625, 8.60833416331, 11.3735971207, 7.01656766308}},
    {"horovod-average", 2, "sgd", -1, {9.15625, 6.40309381485, -3.08897905025, -12.0125847296}},
    {"horovod-average", 2, "nesterov", -1, {9.15625, -0.873368926048, -11.3615092622, -67.4362192397}},
    {"ddp", 2, "sgd", -1, {9.15625, 6.40309381485, -3.08897905025, -12.0125847296}},
    {"ddp-drop-last", 2, "nesterov", -1, {9.15625, -0.873368926048, -11.3615092622, -67.4362192397}},
};

bool close(const std::vector<double>& found, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!(std::abs(found.at(i) - expected[i]) <= 1e-6)) return false;
    }
    return found.size() == expected.size();
}

TEST_CASE("every scheme gives the losses that its own program gives") {
    for (const Case& c : kOracle) {
        CAPTURE(c.scheme, c.workers, c.optimizer, c.worker);
        const auto losses = losses_of(c.scheme, c.workers, c.optimizer);
        const auto found = c.worker < 0 ? mean_losses(losses) : losses.at(static_cast<std::size_t>(c.worker));
        CAPTURE(found);
        CHECK(close(found, c.losses));
    }
}

TEST_CASE("no scheme of several workers gives the losses of another one") {
    // The twin of the case above: a rule mixed up with another would be seen.
    const char* const apart[] = {"tf-distributed-replicated", "tf-distributed-all-reduce", "horovod-average"};
    for (const char* a : apart) {
        for (const char* b : apart) {
            if (a == b) continue;
            CAPTURE(a, b);
            CHECK_FALSE(close(mean_losses(losses_of(a, 2, "sgd")), mean_losses(losses_of(b, 2, "sgd"))));
        }
    }
}

TEST_CASE("a sum of plain gradients is the updates in turn; with momentum it is not") {
    CHECK(close(mean_losses(losses_of("horovod-sum", 2, "sgd")),
                mean_losses(losses_of("tf-distributed-replicated", 2, "sgd"))));
    CHECK_FALSE(close(mean_losses(losses_of("horovod-sum", 2, "momentum")),
                      mean_losses(losses_of("tf-distributed-replicated", 2, "momentum"))));
}

TEST_CASE("clipping before the average is not clipping after it") {
    Config::Optimizer optimizer = example_optimizer({});
    CHECK(run_example(scheme_named("local-clip"), 2, 2, optimizer) ==
          run_example(scheme_named("ddp"), 2, 2, optimizer));
    optimizer.clip_norm = 3;
    CHECK(run_example(scheme_named("local-clip"), 2, 2, optimizer) !=
          run_example(scheme_named("ddp"), 2, 2, optimizer));
    CHECK(run_example(scheme_named("local-clip"), 1, 2, optimizer) ==
          run_example(scheme_named("ddp"), 1, 2, optimizer));
}

TEST_CASE("adam and momentum take the steps that a pencil finds") {
    // One worker, first batch: m = 1/2, A = 1, B = 2, so g_A = 1 + 1/16, g_B = 1/2 + 2/16. Adam's first step is lr in
    // each, whatever the gradient; momentum's is lr g.
    const auto loss = [](double a, double b) { return 4.5 * a * b + (a * a + b * b) / 32; };
    const double lr = 1.0 / 16;
    CHECK(losses_of("ddp", 1, "adam")[0][1] == Approx(loss(1 - lr, 2 - lr)).epsilon(1e-7));
    CHECK(losses_of("ddp", 1, "momentum")[0][1] == Approx(loss(1 - lr * 1.0625, 2 - lr * 0.625)).epsilon(1e-14));
    // Two workers in turn on the same weights, m = 1/2 and 17/2: the second momentum step takes 0.9 of the first along.
    const double a0 = 1.0625, b0 = 0.625, a1 = 17 + 1.0 / 16, b1 = 8.5 + 2.0 / 16;
    const double a = 1 - lr * (a0 + 0.9 * a0 + a1), b = 2 - lr * (b0 + 0.9 * b0 + b1);
    CHECK(losses_of("tf-distributed-replicated", 2, "momentum")[0][1] == Approx(loss(a, b)).epsilon(1e-14));
}

TEST_CASE("settings that the example would pass over are refused") {
    CHECK_THROWS_WITH(example_optimizer({"optimizer.weight_decay=0.1"}), Catch::Contains("optimizer.weight_decay"));
    CHECK_THROWS_WITH(example_optimizer({"optimizer.l2=0.1"}), Catch::Contains("optimizer.l2"));
}

TEST_CASE("an optimizer that the example does not have is named") {
    CHECK_THROWS_WITH(losses_of("ddp", 1, "lamb"), Catch::Contains("lamb") && Catch::Contains("rmsprop"));
}

TEST_CASE("the example's JSON holds the losses of each worker, then each step") {
    const auto losses = losses_of("tf-distributed-replicated", 2, "sgd");
    const auto json = nlohmann::json::parse(
        example_json(scheme_named("tf-distributed-replicated"), 2, example_optimizer({}), losses));
    CHECK(json["losses"].get<std::vector<std::vector<double>>>() == losses);
    CHECK(json["workers"] == 2);
    CHECK(json["scheme"] == "tf-distributed-replicated");
}

}  // namespace
}  // namespace lockstep

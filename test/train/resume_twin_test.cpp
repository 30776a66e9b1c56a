// Twins of the equality matrix: each loses one thing that a checkpoint keeps, and the comparison with the run that was
// never stopped must then fail. What is not missed when it is gone was not compared.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "io/safetensors.hpp"
#include "train/checkpoint.hpp"
#include "train/journeys.hpp"
#include "train/recipe.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// The recipe with these values, and the first value of every other factor.
Recipe recipe_with(const std::vector<std::pair<Factor, std::string>>& choices) {
    Recipe recipe(recipe_levels().size(), 0);
    for (const auto& [factor, value] : choices) {
        const std::vector<std::string>& values = values_of(factor);
        const auto found = std::find(values.begin(), values.end(), value);
        REQUIRE(found != values.end());
        recipe[static_cast<std::size_t>(factor)] = static_cast<std::size_t>(found - values.begin());
    }
    return recipe;
}

/// Sets all tensors with `part` in their names to zero; the file keeps its length and order.
void zero(std::vector<std::byte>& file, const std::string& part) {
    const SafetensorsFile parsed = SafetensorsFile::parse(file, "state");
    std::size_t at = file.size();
    for (const TensorView& tensor : parsed.tensors()) at -= tensor.bytes.size();  // to where the first one begins
    int zeroed = 0;
    for (const TensorView& tensor : parsed.tensors()) {
        if (tensor.name.find(part) != std::string::npos) {
            std::memset(file.data() + at, 0, tensor.bytes.size());
            ++zeroed;
        }
        at += tensor.bytes.size();
    }
    REQUIRE(zeroed > 0);
}

/// "velocity", … of "velocity/conv1.weight".
std::set<std::string> slots_of(const std::vector<std::byte>& optimizer) {
    std::set<std::string> slots;
    const SafetensorsFile parsed = SafetensorsFile::parse(optimizer, "optimizer");
    for (const TensorView& tensor : parsed.tensors()) slots.insert(tensor.name.substr(0, tensor.name.find('/')));
    return slots;
}

/// A run stopped after `stop` steps whose checkpoint somebody spoils, and goes on from then.
class Stopped {
  public:
    Stopped(const Config& config, int64_t stop) : config_(config), data_(open_data(config)), voyage_(config_, data_) {
        REQUIRE(run_leg(config_, data_, folder_ / "legs", {2, 1, stop}).steps == stop);
    }
    Checkpoint checkpoint() const { return read_checkpoint(newest_checkpoint(folder_ / "legs/checkpoints")); }
    /// Differences from the run that never stopped, once it has gone on from this checkpoint.
    std::string after(const Checkpoint& from) const {
        const std::string out = folder_ / "after";
        std::filesystem::remove_all(out);
        std::filesystem::copy(folder_ / "legs", out, std::filesystem::copy_options::recursive);
        write_checkpoint(out + "/checkpoints", from, 3);
        run_leg(config_, data_, out, {1});
        return differences(files_of(out), voyage_.whole());
    }
    const Voyage& voyage() const { return voyage_; }

  private:
    Config config_;
    DataSplits data_;
    Voyage voyage_;
    TemporaryFolder folder_;
};

/// A loss that never changes, evaluated after steps 2 (the best), 4, 6, 8 …
Config standing_config(const Recipe& recipe) {
    Config config = config_of(recipe);
    config.optimizer.lr = 1e-30;
    config.eval.every_epochs = 0;
    config.log.every = 1;
    return config;
}

}  // namespace

TEST_CASE("twin: of every optimizer, each slot that is lost on resume is found out") {
    for (const std::string& optimizer : values_of(Factor::kOptimizer)) {
        INFO(optimizer);
        const Stopped run(config_of(recipe_with({{Factor::kOptimizer, optimizer}})), 6);
        const Checkpoint kept = run.checkpoint();
        CHECK(run.after(kept) == "");
        const std::set<std::string> slots = slots_of(kept.optimizer);
        const bool two =
            optimizer.starts_with("adam") || optimizer == "lamb" || optimizer.find("_mom") != std::string::npos;
        CHECK(slots.size() == (optimizer == "sgd" ? 0U : two ? 2U : 1U));
        for (const std::string& slot : slots) {
            INFO(slot);
            Checkpoint spoiled = kept;
            zero(spoiled.optimizer, slot + "/");
            CHECK(run.after(spoiled).starts_with("model"));
        }
    }
}

TEST_CASE("twin: running values of batch norm that are lost on resume are found out") {
    for (const char* scope : {"shard", "global"}) {
        const Stopped run(config_of(recipe_with({{Factor::kNorm, scope}})), 6);
        Checkpoint spoiled = run.checkpoint();
        CHECK(run.after(spoiled) == "");
        zero(spoiled.model, ".running_var");
        CHECK(run.after(spoiled) != "");
    }
}

TEST_CASE("twin: of a plateau, the count, the best value and the falls are each missed") {
    Config config = standing_config(recipe_with({{Factor::kSchedule, "plateau"}}));
    config.schedule.patience = 2;
    const Stopped run(config, 9);  // evaluated after 2, 4, 6 (a fall) and 8
    const Checkpoint kept = run.checkpoint();
    CHECK(run.after(kept) == "");
    REQUIRE(kept.state.history->plateau.since == 1);
    REQUIRE(kept.state.history->drops == 1);
    Checkpoint spoiled = kept;
    spoiled.state.history->plateau.since = 0;
    CHECK(run.after(spoiled).find("metrics") != std::string::npos);
    spoiled = kept;
    spoiled.state.history->drops = 0;
    CHECK(run.after(spoiled).find("metrics") != std::string::npos);
    spoiled = kept;
    spoiled.state.history->plateau = {};  // the next evaluation is the best so far
    CHECK(run.after(spoiled).find("metrics") != std::string::npos);
    spoiled = kept;
    spoiled.state.history.reset();
    CHECK(run.after(spoiled).find("metrics") != std::string::npos);
}

TEST_CASE("twin: the counts of an early end and the best checkpoint so far are missed") {
    const Config stopping = standing_config(recipe_with({{Factor::kDecides, "stops"}}));
    const Stopped early(stopping, 5);  // evaluated after 2 and 4: it ends with step 8
    CHECK(early.voyage().steps() == 8);
    Checkpoint spoiled = early.checkpoint();
    CHECK(early.after(spoiled) == "");
    spoiled.state.history->stop.since = 0;
    CHECK(early.after(spoiled).find("metrics") != std::string::npos);

    Config config = standing_config(recipe_with({{Factor::kDecides, "best"}}));
    const Stopped best(config, 5);
    CHECK(best.voyage().whole().best == "step-00000002");
    spoiled = best.checkpoint();
    CHECK(best.after(spoiled) == "");
    spoiled.state.history->best = {};
    CHECK(best.after(spoiled).find("best") != std::string::npos);
}

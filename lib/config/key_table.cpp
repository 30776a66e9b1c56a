// The sections, the pairs, and the rows of all sections in one list. A key is added as a row of its section's file and
// as a field of Config; nothing else knows it by name but what uses it.
#include "config/key_table.hpp"

#include <algorithm>
#include <array>

#include "config/keys_augment.hpp"
#include "config/keys_data.hpp"
#include "config/keys_running.hpp"
#include "config/keys_training.hpp"

namespace lockstep {
namespace {

constexpr Section kSections[] = {
    {"", "The run."},
    {"data", "What is trained on and in which order it is read."},
    {"augment", "How training samples are varied: a function of seed, epoch and position. Evaluation varies nothing."},
    {"model", "The network."},
    {"batch", "The global batch and the shards it is cut into. Neither depends on the number of ranks."},
    {"train", "How long. Exactly one of `epochs` and `steps`."},
    {"optimizer", "How a gradient becomes an update."},
    {"schedule", "How the learning rate changes."},
    {"reduce", "How gradients are added over shards and ranks."},
    {"batch_norm", "Batch normalisation, where the model has it."},
    {"checkpoint", "What is saved while training. Exactly one of `every_steps` and `every_epochs`, or neither."},
    {"eval",
     "Evaluation while training. Exactly one of `every_epochs` and `every_steps`; one always follows the last step."},
    {"check", "Proof while training that all ranks hold the same weights."},
    {"log", "Which lines are written."},
    {"device",
     "What computes, and how fast. Each rank follows its own, but for `arithmetic`, `precision` and `transport`."},
};

constexpr KeyPair kPairs[] = {
    {"train.epochs", "train.steps"},
    {"checkpoint.every_steps", "checkpoint.every_epochs"},
    {"eval.every_epochs", "eval.every_steps"},
};

/// One list out of several, as a constant.
template <std::size_t... Counts>
constexpr auto joined(const Key (&... lists)[Counts]) {
    std::array<Key, (Counts + ...)> keys{};
    std::size_t at = 0;
    ((at = static_cast<std::size_t>(std::copy(std::begin(lists), std::end(lists), keys.begin() + at) - keys.begin())),
     ...);
    return keys;
}

constexpr auto kKeys = joined(kDataKeys, kAugmentKeys, kTrainingKeys, kRunningKeys);

}  // namespace

std::span<const Key> config_keys() {
    return kKeys;
}
std::span<const KeyPair> config_pairs() {
    return kPairs;
}
std::span<const Section> config_sections() {
    return kSections;
}

}  // namespace lockstep

// `config import`: another trainer's flags as a config with the same meaning on one machine. What a flag did in that
// trainer is said beside the line that it became.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/command_line.hpp"
#include "explain/imported.hpp"

namespace lockstep {

struct ImportedConfig {
    std::string toml;
    std::vector<std::string> refused;  // flags that could not be honoured, and why
    std::vector<std::string> changed;  // flags that do something else here, and what
};

/// `from`: tf_cnn_benchmarks | estimator | horovod | ddp. `words`: the command line, with or without what starts it.
/// Throws kUsage for another trainer, for a network that Lockstep does not have, and for values that are none or that
/// no config can have: what is returned passes `config check`.
ImportedConfig import_config(std::string_view from, std::span<const std::string> words);

// One each; they take what they know.
void import_tf_cnn_benchmarks(CommandLine& line, Imported& config);
void import_estimator(CommandLine& line, Imported& config);
void import_horovod(CommandLine& line, Imported& config);
void import_ddp(CommandLine& line, Imported& config);

inline constexpr int64_t kImageNetSamples = 1'281'167, kImageNetTestSamples = 50'000;  // samples

/// A data set of a known name: how many samples, and the lines of [data] for files below `folder` ("": synthetic).
int64_t import_known_data(std::string_view name, const std::string& folder, int64_t side, Imported& config);

/// Lines for torchvision's folders train/ and val/ (or test/) of pictures below `folder`.
void import_image_folders(const std::string& train, const std::string& test, int64_t side, Imported& config);

/// Made-up pictures of 1,000 classes, of the size that these networks are made for.
void import_made_up_pictures(int64_t side, std::string_view why, Imported& config);

/// model.name, in torchvision's flavor, for its name; throws kUsage where there is no such network.
void import_torchvision_model(const FlagList::Flag& flag, Imported& config);

/// Who computed which part of a batch there.
struct BatchParts {
    int64_t workers = 1;
    std::string_view who{};     // one of them: "process"
    int64_t batch = 0;          // of all
    int64_t each = 0;           // samples of one pass of one worker
    int64_t passes = 1;         // of one worker, accumulated
    std::string passes_flag{};  // which asked for several
    bool own_norm = true;       // batch norm over each part by itself
    bool gpus_unknown = false;  // the workers are nodes, which divide their parts further
};

/// batch.shards where the default would leave workers idle; batch.micro for passes, or, where batch norm is over the
/// whole batch, which allows one pass only, what to do in its place; and what becomes of batch norm's statistics.
/// After the model's lines.
void import_parts(const BatchParts& parts, Imported& config);

/// That the command line names no network.
void name_missing_model(Imported& config);

/// That evaluation does not cut out the centre of a picture, as torchvision's and PyTorch's scripts do; `flags` of
/// theirs that say how, or "".
void name_center_crop(std::string_view flags, int64_t side, Imported& config);

}  // namespace lockstep

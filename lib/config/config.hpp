// The typed settings of a run. Every field belongs to one row of the key table (config/key_table.hpp), from which
// parsing, validation, printing, the JSON Schema and the reference page are made; defaults stand there, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config_table.hpp"
#include "core/error.hpp"

namespace lockstep {

/// `data.train` and `data.test`: a table of paths (idx: images, labels) or a list of paths (other formats). Absolute.
struct DataPaths {
    std::string images;
    std::string labels;
    std::vector<std::string> paths;
    bool empty() const { return images.empty() && labels.empty() && paths.empty(); }
    bool operator==(const DataPaths&) const = default;
};

struct Config {
    int64_t seed = 1;

    struct Data {
        std::string format = "idx";
        DataPaths train, test;
        int64_t samples = 1003, test_samples = 256, classes = 10;  // synthetic
        std::vector<int64_t> shape;                                // [h, w, c]; empty = from the data
        std::vector<double> mean{0.0}, std{1.0};
        std::string shuffle = "full";
        int64_t block = 1024;
        double validation = 0.0;
        std::vector<ConfigTable> columns;                                                  // csv
        std::string label = "fine";                                                        // cifar (of CIFAR-100)
        std::string image_feature = "image/encoded", label_feature = "image/class/label";  // tfrecord
        bool header = true;                                                                // csv
        std::string separator = ",", comment;
        int64_t skip_lines = 0;
        std::vector<std::string> missing{"", "?", "NA"};
        std::string label_column;
        int64_t features = 0;          // libsvm
        std::string x = "x", y = "y";  // npz
    } data;

    struct Augment {
        int64_t pad_crop = 0;
        bool flip = false;
        bool resized_crop = false;
        std::vector<double> scale{0.08, 1.0}, ratio{0.75, 1.3333333333333333};  // of resized_crop
        double brightness = 0.0, contrast = 0.0, saturation = 0.0;
        int64_t cutout = 0;
    } augment;

    struct Model {
        std::string name = "mlp";
        std::vector<int64_t> hidden{512, 256};
        std::vector<int64_t> channels{32, 64};
        double dropout = 0.0;
        std::string flavor = "lockstep";
        std::string weights;
        std::vector<ConfigTable> layers;  // custom
    } model;

    struct BatchSettings {
        int64_t size = 128;
        int64_t shards = 8;
        std::string layout = "batch";
        std::string last = "keep";
        int64_t micro = 0;
    } batch;

    struct Train {
        std::optional<int64_t> epochs;  // exactly one of the two
        std::optional<int64_t> steps;
        std::string loss = "auto";
        double label_smoothing = 0.0;
        std::string stop_metric;
        int64_t stop_patience = 10;
    } train;

    struct Optimizer {
        std::string name = "momentum";
        double lr = 0.05, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, rho = 0.9, epsilon = 1e-8;
        bool epsilon_inside = false;
        double rmsprop_momentum = 0.0, initial = 0.0, trust = 0.001;
        double weight_decay = 0.0, l2 = 0.0;
        std::string decay = "all";
        double clip_norm = 0.0;
    } optimizer;

    struct Schedule {
        std::string name = "constant";
        double warmup_epochs = 0.0, every_epochs = 10.0, factor = 0.1;
        std::vector<double> boundaries, values;
        double end = 0.0, power = 1.0, rate = 0.96;
        bool staircase = false;
        std::string metric = "loss";
        int64_t patience = 10;
        double min_lr = 0.0;
    } schedule;

    struct Reduce {
        std::string op = "average";
        std::string algorithm = "canonical";
        int64_t bucket_kib = 4096, small_kib = 32;
    } reduce;

    struct BatchNorm {
        std::string scope = "shard";
        double momentum = 0.9, epsilon = 1e-5;
        bool unbiased = false;
    } batch_norm;

    struct Checkpoint {
        int64_t every_steps = 0, every_epochs = 0;
        int64_t keep = 3;
        std::string best;
    } checkpoint;

    struct Eval {
        int64_t every_epochs = 1, every_steps = 0;
    } eval;

    struct Check {
        int64_t replicas_every = 100;
        std::string trace = "off";
    } check;

    struct Log {
        int64_t every = 10;
        bool grad_norm = false;
        std::string dir;
    } log;

    struct Device {
        std::string backend = "auto";
        int64_t threads = 0;
        std::string isa = "auto";
        std::string arithmetic = "defined";
        std::string precision = "fp32";
        int64_t streams = 0;
        bool graphs = false;
        std::string transport = "auto";
        double timeout_s = 120;
        int64_t input_threads = 0;
        std::string cache;
    } device;
};

/// Where a key's value in force comes from: "default", "exp.toml:12:5", "LOCKSTEP_BATCH_SIZE", "--set batch.size=64".
using Origins = std::map<std::string, std::string>;

struct LoadedConfig {
    Config config;
    Origins origins;                    // one entry for every key of the table
    std::vector<std::string> warnings;  // unknown LOCKSTEP_ variables with the nearest key, …
    std::string name;                   // of the run: the stem of the last file, for runs/<name>-<time>
};

/// Faults of a config: what() has one line per fault, each with its position, and is printed as it is.
class ConfigError : public Error {
  public:
    explicit ConfigError(const std::string& lines) : Error(ErrorKind::kUsage, lines) {}
};

struct ConfigSources {
    std::vector<std::string> files;                                // in order
    std::vector<std::pair<std::string, std::string>> environment;  // NAME, value: the LOCKSTEP_ variables
    std::vector<std::string> sets;                                 // "a.b=v"
    std::string directory;  // that relative paths of variables and --set start at
};

/// Layers the sources, checks types, ranges, choices and pairs. Throws ConfigError, an Error(kUsage) whose message has
/// one line per fault, all faults at once, each with file:line:column and the full key.
LoadedConfig load_config(const ConfigSources& sources);

/// The LOCKSTEP_ variables of this process (but LOCKSTEP_DEBUG_*). The one place that reads the environment.
std::vector<std::pair<std::string, std::string>> config_environment();
std::optional<std::string> environment_variable(const char* name);  // for launcher detection, NO_COLOR, …

/// TOML that loads again to the same Config: every key in force, as set, with its unit and origin as a comment if asked
/// for.
std::string config_to_toml(const Config& config, const Origins* origins = nullptr);
std::string config_to_json(const Config& config);  // one object, nested as the TOML; for state.json and --json

}  // namespace lockstep

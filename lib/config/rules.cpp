#include "config/rules.hpp"

#include <fmt/format.h>

#include "config/key.hpp"
#include "config/read_value.hpp"

namespace lockstep {
namespace {

class Checker {
  public:
    Checker(const Config& config, const Origins& origins, const std::set<std::string>& broken)
        : config_(config), origins_(origins), broken_(broken) {}

    void check_length() {
        if (!config_.train.epochs && !config_.train.steps && !is_broken("train.steps")) {
            add("train.epochs", "train.epochs, train.steps: neither is set; set exactly one");
        }
    }

    void check_data() {
        const Config::Data& data = config_.data;
        if (data.format == "idx") {
            if (data.train.empty()) {
                add("data.train",
                    "data.train: not set; idx needs { images = \"…\", labels = \"…\" } (or data.format = "
                    "\"synthetic\")");
            }
            check_idx("data.train", data.train);
            check_idx("data.test", data.test);
        } else if (data.format != "synthetic") {
            if (data.train.empty()) {
                add("data.train", fmt::format("data.train: not set; {} needs {}", data.format, paths_needed()));
            }
            check_list("data.train", data.train);
            check_list("data.test", data.test);
        }
        check_channels("data.mean", data.mean.size());
        check_channels("data.std", data.std.size());
        if (data.mean.size() > 1 && data.std.size() > 1 && data.mean.size() != data.std.size()) {
            add("data.std", fmt::format("data.std must have as many values as data.mean, got {} and {}",
                                        data.std.size(), data.mean.size()));
        }
    }

    void check_augment() {
        check_order("augment.scale", config_.augment.scale);
        check_order("augment.ratio", config_.augment.ratio);
    }

    // A GPU asked for with "auto" may still not be there: that is found where the device is chosen.
    void check_device() {
        const Config::Device& device = config_.device;
        if (device.arithmetic == "vendor" && device.backend == "cpu") {
            add("device.arithmetic", "device.arithmetic = \"vendor\" needs a GPU, and device.backend is \"cpu\"");
        }
        if (device.precision != "fp32" && device.arithmetic != "vendor") {
            add("device.precision", fmt::format("device.precision = \"{}\" needs device.arithmetic = \"vendor\"; "
                                                "\"{}\" computes in fp32",
                                                device.precision, device.arithmetic));
        }
    }

    std::vector<std::string> faults() && { return std::move(faults_); }

  private:
    bool is_broken(std::string_view key) const { return broken_.contains(std::string(key)); }

    void add(std::string_view key, const std::string& text) {
        if (is_broken(key)) return;
        const auto origin = origins_.find(std::string(key));
        const bool set = origin != origins_.end() && origin->second != "default";
        faults_.push_back(set ? origin->second + ": " + text : text);
    }

    void check_idx(std::string_view key, const DataPaths& paths) {
        if (paths.empty()) return;
        if (!paths.paths.empty()) {
            add(key, fmt::format("{}: idx needs {{ images = \"…\", labels = \"…\" }}, got {}", key, toml_text(paths)));
        } else if (paths.images.empty() || paths.labels.empty()) {
            add(key, fmt::format("{}: {} is missing; idx needs images and labels", key,
                                 paths.images.empty() ? "images" : "labels"));
        }
    }

    std::string_view paths_needed() const {
        return config_.data.format == "npz" ? "one \"….npz\", or { images = \"x.npy\", labels = \"y.npy\" }"
                                            : "a path or a list of paths";
    }

    void check_list(std::string_view key, const DataPaths& paths) {
        if (paths.images.empty() && paths.labels.empty()) return;
        if (config_.data.format == "npz" && !paths.images.empty() && !paths.labels.empty()) return;
        add(key, fmt::format("{}: {} needs {}, got {}", key, config_.data.format, paths_needed(), toml_text(paths)));
    }

    void check_order(std::string_view key, const std::vector<double>& range) {
        if (range.size() == 2 && range[0] > range[1]) {
            add(key, fmt::format("{} must be [least, largest], got {}", key, toml_text(range)));
        }
    }

    void check_channels(std::string_view key, size_t count) {
        const std::vector<int64_t>& shape = config_.data.shape;
        if (count == 1 || shape.empty() || static_cast<int64_t>(count) == shape[2]) return;
        add(key,
            fmt::format("{} must have one value or one per channel (data.shape has {}), got {}", key, shape[2], count));
    }

    const Config& config_;
    const Origins& origins_;
    const std::set<std::string>& broken_;
    std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> check_rules(const Config& config, const Origins& origins,
                                     const std::set<std::string>& broken) {
    Checker checker(config, origins, broken);
    checker.check_length();
    checker.check_data();
    checker.check_augment();
    checker.check_device();
    return std::move(checker).faults();
}

std::vector<std::string> warn_of_keys(const Config& config, const Origins& origins) {
    const auto origin = origins.find("optimizer.momentum");
    const bool wanted = origin != origins.end() && origin->second != "default" &&
                        origin->second.find("config.resolved.toml:") == std::string::npos;
    if (config.optimizer.name != "sgd" || !wanted || config.optimizer.momentum <= 0) return {};
    return {
        fmt::format("optimizer.momentum = {} ({}): sgd has none; write optimizer.name = \"momentum\" or \"nesterov\"",
                    toml_text(config.optimizer.momentum), origin->second)};
}

}  // namespace lockstep

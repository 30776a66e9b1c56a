// Configs for tests: loaded from a text in a folder of its own, or made at random from the key table.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/key.hpp"
#include "io/temp_folder.hpp"

namespace lockstep::test {

/// The least that is a whole config.
inline const std::string kLeast = "data.format = \"synthetic\"\ntrain.epochs = 1\n";

struct Sources {
    std::vector<std::string> files = {};  // texts; they lie in 1.toml, 2.toml, …
    std::vector<std::pair<std::string, std::string>> environment = {};
    std::vector<std::string> sets = {};
};

inline LoadedConfig load(const TempFolder& folder, const Sources& sources) {
    ConfigSources real{{}, sources.environment, sources.sets, "/some dir"};
    for (size_t i = 0; i < sources.files.size(); ++i) {
        real.files.push_back(folder.write(std::to_string(i + 1) + ".toml", sources.files[i]));
    }
    return load_config(real);
}

inline LoadedConfig load(const Sources& sources) {
    const TempFolder folder;
    return load(folder, sources);
}

/// The fault lines, without the folder before "1.toml"; none if the config is legal.
inline std::vector<std::string> faults(const Sources& sources) {
    const TempFolder folder;
    const auto error = caught([&] { load(folder, sources); });
    std::vector<std::string> lines;
    if (!error) return lines;
    std::string line;
    for (const char c : error->message + "\n") {
        if (c != '\n') {
            line += c;
            continue;
        }
        if (line.starts_with(folder.path())) line.erase(0, folder.path().size() + 1);
        lines.push_back(line);
        line.clear();
    }
    return lines;
}

/// Legal values of every key, and together a legal config.
class RandomConfig {
  public:
    explicit RandomConfig(uint64_t seed) : random_(seed) {}

    Config make() {
        Config config;
        for (const Key& key : config_keys()) key.field.set(config, value(key));
        for (const KeyPair& pair : config_pairs()) {
            const bool both_unset = !key_of(pair.first).field.optional && below(3) == 0;
            if (both_unset || below(2) == 0) unset(config, key_of(pair.first));
            if (both_unset || is_set(key_of(pair.first).field.get(config))) unset(config, key_of(pair.second));
        }
        const size_t channels = config.data.shape.empty() ? config.data.mean.size() : config.data.shape[2];
        if (config.data.mean.size() > 1) config.data.mean.resize(channels, 0.5);
        if (config.data.std.size() > 1) config.data.std.resize(channels, 0.5);
        for (DataPaths* paths : {&config.data.train, &config.data.test}) {
            if (config.data.format != "idx" && !paths->images.empty()) *paths = {{}, {}, {paths->images}};
        }
        std::sort(config.augment.scale.begin(), config.augment.scale.end());
        std::sort(config.augment.ratio.begin(), config.augment.ratio.end());
        if (config.device.precision != "fp32") config.device.arithmetic = "vendor";
        if (config.device.arithmetic == "vendor" && config.device.backend == "cpu") config.device.backend = "cuda";
        return config;
    }

    Value value(const Key& key) {
        switch (key.field.type) {
            case KeyType::kBool:
                return below(2) == 0;
            case KeyType::kInteger:
                return integer(key);
            case KeyType::kNumber:
                return number(key);
            case KeyType::kString:
                return string(key);
            case KeyType::kIntegers:
                return list<int64_t>(key, [&] { return integer(key) % 7 + 1; });
            case KeyType::kNumbers:
                return list<double>(key, [&] { return number(key); });
            case KeyType::kPaths:
                return below(4) == 0 && key.name != "data.train" ? DataPaths() : DataPaths{path(), path(), {}};
            case KeyType::kStrings:
                return list<std::string>(key, [&] { return path(); });
            case KeyType::kTables:
                return list<ConfigTable>(key, [&] { return table(key.table); });
        }
        return {};
    }

  private:
    /// Some entries of a table, and those that it must have, in the order of their rows, as reading leaves them.
    ConfigTable table(std::span<const TableKey> rows) {
        ConfigTable made;
        for (const TableKey& row : rows) {
            if (!row.required && below(3) != 0) continue;
            const Key key{.name = row.name,
                          .field = {.type = row.type, .optional = false, .get = nullptr, .set = nullptr},
                          .doc = row.doc,
                          .range = row.range,
                          .choices = row.choices,
                          .fp32 = true};
            const Value drawn = value(key);
            std::visit(
                [&](const auto& entry) {
                    using T = std::decay_t<decltype(entry)>;
                    if constexpr (std::is_constructible_v<ConfigTable::Value, std::in_place_type_t<T>, T>)
                        made.entries.emplace_back(row.name, entry);
                },
                drawn);
        }
        return made;
    }

    size_t below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }

    static void unset(Config& config, const Key& key) {
        key.field.set(config, key.field.optional ? Value() : Value(int64_t{0}));
    }

    int64_t integer(const Key& key) {
        const auto least =
            static_cast<int64_t>(key.range.least) + (partner_of(key) != nullptr && key.range.least == 0 ? 1 : 0);
        const double most = std::min(key.range.most, 9e18);
        return std::uniform_int_distribution<int64_t>(least,
                                                      below(2) == 0 ? least + 3 : static_cast<int64_t>(most))(random_);
    }

    /// Numbers of few and of all digits, tiny and huge, inside the range.
    double number(const Key& key) {
        for (;;) {
            const double whole = std::uniform_real_distribution<double>(-2, 2)(random_);
            const double drawn = below(3) == 0   ? std::round(whole * 100) / 100
                                 : below(2) == 0 ? whole
                                                 : std::ldexp(whole, static_cast<int>(below(600)) - 300);
            const auto legal = [&](double value) {
                const bool low = key.range.above ? value <= key.range.least : value < key.range.least;
                const bool high = key.range.below ? value >= key.range.most : value > key.range.most;
                return !low && !high;
            };
            if (!legal(drawn)) continue;
            if (!key.fp32) return drawn;
            if (std::abs(drawn) < 3e38 && legal(static_cast<double>(static_cast<float>(drawn)))) return drawn;
        }
    }

    std::string string(const Key& key) {
        if (key.path) return below(3) == 0 ? "" : path();
        const std::vector<std::string_view> choices = choices_of(key);
        return choices.empty() ? "" : std::string(choices[below(choices.size())]);
    }

    std::string path() {
        static constexpr const char* kParts[] = {"a",    " ", "\"", "\\", "\n", "\t", "\x01",
                                                 "\x7f", "é", "☃",  "#",  "=",  "𝄞",  "'"};
        std::string text = "/";
        for (size_t i = below(6) + 1; i > 0; --i) text += kParts[below(std::size(kParts))];
        return text;
    }

    template <class Item, class Draw>
    std::vector<Item> list(const Key& key, Draw draw) {
        size_t count = std::max(key.least_entries, std::min<size_t>(below(4), key.most_entries));
        if ((key.field.get == nullptr || default_of(key) == Value(std::vector<Item>())) && below(2) == 0) count = 0;
        std::vector<Item> items;
        for (; count > 0; --count) items.push_back(draw());
        return items;
    }

    std::mt19937_64 random_;
};

}  // namespace lockstep::test

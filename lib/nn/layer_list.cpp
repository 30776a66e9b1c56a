#include "nn/layer_list.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "config/nearest.hpp"
#include "core/shown_text.hpp"

namespace lockstep {
namespace {

struct Kind {
    std::string_view name;
    std::string_view keys;   // that it has beside kind, name and from
    std::string_view needs;  // those of them that must be given
};

constexpr Kind kKinds[] = {
    {"conv", "channels kernel stride padding pad dilation groups bias norm activation deviation bias_value",
     "channels kernel"},
    {"dense", "units bias norm activation deviation bias_value", "units"},
    {"relu", "", ""},
    {"sigmoid", "", ""},
    {"flatten", "", ""},
    {"pool", "kernel stride padding pad mode", "kernel"},
    {"global_pool", "mode", ""},
    {"batch_norm", "activation", ""},
    {"dropout", "rate", ""},
    {"lrn", "radius alpha beta offset", ""},
    {"add", "activation", ""},
    {"concat", "", ""},
    {"pad_channels", "before behind", ""},
    {"residual", "channels stride block", "channels"},
    {"one_hot", "columns", ""},
    {"embedding", "columns units deviation", "units"},
};

/// A name is part of the names of tensors, which people write in other programs and files.
bool is_plain(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    });
}

void check_residual(const LayerTable& table) {
    if (table.integers("stride").value_or(std::vector<int64_t>{1}).size() != 1) {
        table.refuse("a residual has one stride for both directions");
    }
    const int channels = table.required("channels");
    if (table.text("block").value_or("basic") == "bottleneck" && channels % 4 != 0) {
        table.refuse(
            fmt::format("a bottleneck has a quarter of its channels inside, and {} is no multiple of 4", channels));
    }
}

void check_values(const LayerTable& table, const Kind& kind) {
    table.check_keys(kind.keys);
    for (std::string_view rest = kind.needs; !rest.empty();) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        table.need(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (kind.name == "conv") static_cast<void>(table.window(Window::Border::kSame, false));
    if (kind.name == "pool") static_cast<void>(table.window(Window::Border::kValid, true));
    if (kind.name == "residual") check_residual(table);
}

class Lister {
  public:
    void append(const LayerTable& table) {
        // Faulty or not, a layer is there for those that name it: one fault does not make another.
        const std::string name = name_of(table);
        const bool taken = places_.contains(name);
        std::vector<int> inputs;
        note([&] {
            const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                            [&](const Kind& candidate) { return candidate.name == table.kind(); });
            if (kind == std::end(kKinds)) table.refuse(fmt::format("unknown kind \"{}\"", table.kind()));
            check_values(table, *kind);
            if (name.empty()) table.refuse("name \"\": is empty");
            if (!is_plain(name)) {
                table.refuse(fmt::format("name \"{}\": can hold letters, digits, \".\", \"_\" and \"-\"",
                                         shown_text(name, LineEnds::kEscaped)));
            }
            if (taken) table.refuse(fmt::format("name \"{}\": another layer has it", name));
            inputs = inputs_of(table);
            check_count(table, inputs.size());
        });
        if (!taken) places_[name] = static_cast<int>(layers_.size());
        layers_.push_back({table, name, std::move(inputs)});
    }

    std::vector<ListedLayer> layers() && {
        if (faults_.empty()) note([&] { check_read(); });
        if (!faults_.empty()) throw Error(ErrorKind::kUsage, faults_);
        return std::move(layers_);
    }

  private:
    template <class Action>
    void note(const Action& action) {
        try {
            action();
        } catch (const Error& error) {
            faults_ += fmt::format("{}{}", faults_.empty() ? "" : "\n", error.what());
        }
    }

    std::string name_of(const LayerTable& table) {
        const int number = ++counts_[table.kind()];
        return table.text("name").value_or(fmt::format("{}{}", table.kind(), number));
    }

    std::vector<int> inputs_of(const LayerTable& table) {
        const int before = static_cast<int>(layers_.size()) - 1;  // of the first layer: kSamples
        if (!table.has("from")) {
            read_.insert(before);
            return {before};
        }
        std::vector<int> inputs;
        for (const std::string& from : table.strings("from")) {
            const auto found = places_.find(from);
            if (found == places_.end()) {
                std::vector<std::string> names;
                for (const auto& [name, place] : places_) names.push_back(name);
                table.refuse(fmt::format("from: no layer before it is named \"{}\"{}", from,
                                         did_you_mean(nearest(from, names))));
            }
            read_.insert(found->second);
            inputs.push_back(found->second);
        }
        if (inputs.empty()) table.refuse("from names no layer");
        return inputs;
    }

    static void check_count(const LayerTable& table, std::size_t inputs) {
        const bool joins = table.kind() == "add" || table.kind() == "concat";
        if (joins ? inputs >= 2 : inputs == 1) return;
        table.refuse(
            fmt::format("{} reads {}, got {}", table.kind(), joins ? "two layers or more" : "one layer", inputs));
    }

    void check_read() const {
        for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
            if (read_.contains(static_cast<int>(i))) continue;
            layers_[i].table.refuse(
                fmt::format("layer {}: nothing reads its output; name it in a from, or leave it out", layers_[i].name));
        }
    }

    std::vector<ListedLayer> layers_;
    std::map<std::string, int> places_{{"input", kSamples}};
    std::set<int> read_;
    std::map<std::string, int> counts_;  // of each kind
    std::string faults_;
};

}  // namespace

std::vector<ListedLayer> list_layers(const std::vector<ConfigTable>& layers) {
    if (layers.empty()) {
        fail(ErrorKind::kUsage, "model.layers: custom needs at least one [[model.layers]]");
    }
    Lister lister;
    for (std::size_t i = 0; i < layers.size(); ++i) lister.append(LayerTable(layers[i], i));
    return std::move(lister).layers();
}

}  // namespace lockstep

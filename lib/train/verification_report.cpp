#include "train/verification_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/json_number.hpp"
#include "train/tensor_diff.hpp"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr const char* kNativeReason =
    "reduce.algorithm = \"native\" promises equal bits at an equal number of ranks only; \"canonical\" at any";

float as_float(uint64_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

/// A world by its ranks, and by its row where several have as many.
std::string world_name(const Verification& v, std::size_t i) {
    const int ranks = v.worlds[i].cast.world;
    const auto like = std::count_if(v.worlds.begin(), v.worlds.end(),
                                    [&](const WorldResult& other) { return other.cast.world == ranks; });
    return like == 1 ? fmt::format("world {}", ranks) : fmt::format("world {} (row {})", ranks, i + 1);
}

std::string ranks_text(const WorldCast& cast) {
    if (cast.in_process) return fmt::format("threads of {}", cast.first);
    if (cast.world == 1) return std::to_string(cast.first);
    return fmt::format("{}-{}", cast.first, cast.first + cast.world - 1);
}

double samples_per_s(const WorldResult& world) {
    return world.seconds > 0 ? static_cast<double>(world.samples) / world.seconds : 0;
}

std::string thousands(double value) {
    std::string digits = fmt::format("{:.0f}", value);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    }
    return digits;
}

std::vector<int64_t> index_of(int64_t element, const std::vector<int64_t>& shape) {
    std::vector<int64_t> index(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        index[d] = element % shape[d];
        element /= shape[d];
    }
    return index;
}

/// "fc1.weight[0, 3]".
std::string element_text(const WorldDifference& d) {
    if (!d.element || d.name == "loss") return d.name;
    if (d.shape.empty()) return fmt::format("{}[{}]", d.name, d.element->element);
    return fmt::format("{}[{}]", d.name, fmt::join(index_of(d.element->element, d.shape), ", "));
}

/// JSON knows no NaN and no infinity; people do.
std::string value_text(const WorldDifference& d, uint64_t bits) {
    if (d.width == 8) return std::to_string(bits);
    const float value = as_float(bits);
    return std::isfinite(value) ? json_number(value) : std::isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf";
}

std::string distance_text(const WorldDifference& d) {
    if (d.width == 8) return "samples of other indices";
    const float left = as_float(d.element->reference);
    const float right = as_float(d.element->own);
    if (std::isnan(left) || std::isnan(right)) return "not numbers both";
    return fmt::format("{} ulp apart", ulp_distance(left, right));
}

std::string difference_text(const Verification& v) {
    const WorldDifference& d = *v.difference;
    const std::string world = world_name(v, d.world);
    const std::string reference = world_name(v, 0);
    std::string text =
        fmt::format("differ at step {}: {}, rank {}: {}\n", d.departure.step, world, d.departure.rank, element_text(d));
    if (d.element) {
        const auto line = [&](const std::string& name, uint64_t bits) {
            const std::string hex = d.width == 8 ? "" : fmt::format("  0x{:08x}", bits);
            return fmt::format("  {:<{}}  {:>16}{}\n", name, std::max(world.size(), reference.size()),
                               value_text(d, bits), hex);
        };
        text += line(reference, d.element->reference) + line(world, d.element->own);
        text += fmt::format("  element {}, {}; {} of {} elements {}\n", d.element->element, distance_text(d),
                            d.element->elements, d.elements, d.element->elements == 1 ? "differs" : "differ");
    } else if (!d.departure.failure.empty()) {
        text += fmt::format("  {} did that step, {} could not: {}\n", reference, world, d.departure.failure);
    }
    if (d.reference_strayed) {
        text += fmt::format(
            "  {} was run again for these values and did not repeat itself: it is the one that strayed at first. The "
            "memory or the processor of its hosts is to be suspected\n",
            reference);
    }
    if (v.algorithm == "native") text += fmt::format("  {}\n", kNativeReason);
    return text;
}

ordered_json difference_json(const Verification& v) {
    const WorldDifference& d = *v.difference;
    ordered_json difference{{"step", d.departure.step},
                            {"row", d.world + 1},
                            {"world", v.worlds[d.world].cast.world},
                            {"rank", d.departure.rank},
                            {"tensor", d.name}};
    if (d.element) {
        const auto value = [&](uint64_t bits) -> ordered_json {
            if (d.width == 8) return static_cast<int64_t>(bits);
            // Through the shortest text: a double of the same digits.
            const float number = as_float(bits);
            return std::isfinite(number) ? ordered_json(std::stod(json_number(number))) : ordered_json();
        };
        difference["element"] = d.element->element;
        difference["index"] = index_of(d.element->element, d.shape);
        difference["value"] = value(d.element->own);
        difference["reference"] = value(d.element->reference);
        if (d.width == 4) {
            const float left = as_float(d.element->reference);
            const float right = as_float(d.element->own);
            difference["bits"] = fmt::format("0x{:08x}", d.element->own);
            difference["reference_bits"] = fmt::format("0x{:08x}", d.element->reference);
            difference["ulp"] =
                std::isnan(left) || std::isnan(right) ? ordered_json() : ordered_json(ulp_distance(left, right));
        }
        difference["elements_differing"] = d.element->elements;
        difference["elements"] = d.elements;
    }
    if (!d.departure.failure.empty()) difference["failure"] = d.departure.failure;
    difference["reference_strayed"] = d.reference_strayed;
    if (v.algorithm == "native") difference["reason"] = kNativeReason;
    return difference;
}

}  // namespace

std::string verification_text(const Verification& v) {
    std::vector<std::vector<std::string>> rows{
        {"world", "ranks", "threads", "bucket_kib", "small_kib", "isa", "steps", "samples/s", "equal"}};
    for (std::size_t i = 0; i < v.worlds.size(); ++i) {
        const WorldResult& w = v.worlds[i];
        const std::string equal = w.departure ? fmt::format("no, from step {}", w.departure->step)
                                  : i == 0    ? "reference"
                                              : "yes";
        rows.push_back({std::to_string(w.cast.world), ranks_text(w.cast), std::to_string(w.cast.threads),
                        std::to_string(w.cast.bucket_kib), std::to_string(w.cast.small_kib), w.cast.isa,
                        std::to_string(w.steps), thousands(samples_per_s(w)), equal});
    }
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t column = 0; column + 1 < row.size(); ++column) {
            std::size_t width = 0;
            for (const auto& other : rows) width = std::max(width, other[column].size());
            text += fmt::format("{:<{}}  ", row[column], width);
        }
        text += row.back() + "\n";
    }
    if (v.difference) return text + difference_text(v);
    return text +
           fmt::format("equal: {} step{} in {} worlds, every bit of samples, loss, weights and optimizer state\n",
                       v.steps, v.steps == 1 ? "" : "s", v.worlds.size());
}

std::string verification_json(const Verification& v) {
    ordered_json worlds = ordered_json::array();
    for (const WorldResult& w : v.worlds) {
        worlds.push_back({{"world", w.cast.world},
                          {"in_process", w.cast.in_process},
                          {"round", w.cast.round + 1},
                          {"first_rank", w.cast.first},
                          {"threads", w.cast.threads},
                          {"bucket_kib", w.cast.bucket_kib},
                          {"small_kib", w.cast.small_kib},
                          {"isa", w.cast.isa},
                          {"steps", w.steps},
                          {"equal", !w.departure.has_value()},
                          {"differs_at_step", w.departure ? ordered_json(w.departure->step) : ordered_json()},
                          {"wall", {{"time_s", w.seconds}, {"samples_per_s", samples_per_s(w)}}}});
    }
    const ordered_json document{{"config", v.config},
                                {"steps", v.steps},
                                {"equal", !v.difference.has_value()},
                                {"worlds", worlds},
                                {"difference", v.difference ? difference_json(v) : ordered_json()}};
    return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string departure_line(const Verification& v) {
    if (!v.difference) return "";
    return fmt::format("step {}: {} differs from {} in {}", v.difference->departure.step,
                       world_name(v, v.difference->world), world_name(v, 0), element_text(*v.difference));
}

}  // namespace lockstep

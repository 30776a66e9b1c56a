#include "train/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <string_view>

#include "core/error.hpp"
#include "train/step_engine.hpp"

namespace lockstep {
namespace {

constexpr const char* kForm = "it is rank:R,step:S,bit:B, for example rank:1,step:7,bit:3";

int64_t number(std::string_view text, std::string_view name, int64_t least, int64_t most, const std::string& where) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
    const std::string range = most == INT64_MAX ? fmt::format("from {}", least) : fmt::format("{} … {}", least, most);
    fail(ErrorKind::kUsage, "{}: {} must be a whole number {}, got {}", where, name, range,
         text.empty() ? "nothing" : text);
}

/// The element that is number 0 in a file.
int64_t first_element(const Parameter& tensor) {
    const std::vector<int32_t> columns = tensor.file_columns();
    return tensor.offset + (columns.empty() ? 0 : columns.front());
}

}  // namespace

Fault parse_fault(const std::string& text, const std::string& where) {
    std::map<std::string_view, std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view part = std::string_view(text).substr(begin, end - begin);
        const std::size_t colon = part.find(':');
        const std::string_view name = part.substr(0, colon);
        const bool known = name == "rank" || name == "step" || name == "bit";
        if (colon == std::string_view::npos || !known || !parts.emplace(name, part.substr(colon + 1)).second) {
            fail(ErrorKind::kUsage, "{}: {} is not a fault to plant; {}", where, text, kForm);
        }
        begin = end + 1;
    }
    if (parts.size() != 3) fail(ErrorKind::kUsage, "{}: {} is not a fault to plant; {}", where, text, kForm);
    return {static_cast<int>(number(parts["rank"], "rank", 0, INT32_MAX, where)),
            number(parts["step"], "step", 1, INT64_MAX, where),
            static_cast<int>(number(parts["bit"], "bit", 0, 31, where))};
}

void check_fault(const Fault& fault, int ranks, int64_t steps, const std::string& where) {
    if (fault.rank >= ranks) {
        fail(ErrorKind::kUsage, "{}: there is no rank {} in a world of {}; ranks count from 0", where, fault.rank,
             ranks);
    }
    if (fault.step > steps) {
        fail(ErrorKind::kUsage, "{}: step {} is never reached, the last one is {}", where, fault.step, steps);
    }
}

FaultPlanter::FaultPlanter(const Fault& fault, int rank, const ParameterTable& parameters, Backend& backend)
    : fault_(fault), here_(rank == fault.rank), element_(0), backend_(backend) {
    const auto& all = parameters.all();
    const auto weight = std::find_if(all.begin(), all.end(), [](const Parameter& p) { return p.is_weight(); });
    if (weight == all.end()) fail(ErrorKind::kUsage, "a fault cannot be planted: the model has no weights");
    element_ = first_element(*weight);
}

void FaultPlanter::updated(const StepOutcome& outcome, float* weights) {
    if (!here_ || outcome.at.update != fault_.step) return;
    float value = 0;
    backend_.download(backend_.main(), weights + element_, &value, sizeof value);
    backend_.synchronize();
    value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ (uint32_t{1} << fault_.bit));
    backend_.upload(backend_.main(), &value, weights + element_, sizeof value);
    backend_.synchronize();
}

}  // namespace lockstep

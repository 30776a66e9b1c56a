#include "train/trace_line.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/json_depth.hpp"
#include "io/json_number.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::string_view kStep = "{\"step\":";
constexpr std::string_view kStart = ",\"start\":";
constexpr std::string_view kOwn = ",\"own\":";

/// Entries as they are, with commas between them.
template <class List, class Entry>
std::string joined(const List& list, Entry entry) {
    std::string text;
    for (const auto& item : list) {
        if (!text.empty()) text += ',';
        text += entry(item);
    }
    return text;
}

std::string hashes(const std::vector<uint64_t>& list) {
    return joined(list, [](uint64_t hash) { return fmt::format("\"{:016x}\"", hash); });
}

std::string names(const std::vector<std::string>& list) {
    return joined(list, json_string);
}

std::string apart_field(const std::vector<TraceApart>& apart) {
    if (apart.empty()) return "";
    return fmt::format(",\"apart\":[{}]", joined(apart, [](const TraceApart& a) {
                           return fmt::format("{{\"rank\":{},\"gradient\":[{}],\"weights\":[{}]}}", a.rank,
                                              names(a.gradient), names(a.weights));
                       }));
}

uint64_t hash_of(const json& value) {
    const auto& text = value.get_ref<const std::string&>();
    uint64_t hash = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
    if (error != std::errc() || end != text.data() + text.size() || text.size() != 16) {
        fail(ErrorKind::kData, "\"{}\" is no hash of 16 digits", text);
    }
    return hash;
}

std::vector<uint64_t> hashes_of(const json& list) {
    std::vector<uint64_t> all;
    for (const json& entry : list) all.push_back(hash_of(entry));
    return all;
}

std::vector<TraceApart> apart_of(const json& line) {
    std::vector<TraceApart> all;
    if (!line.contains("apart")) return all;
    for (const json& entry : line.at("apart")) {
        all.push_back({entry.at("rank"), entry.at("gradient").get<std::vector<std::string>>(),
                       entry.at("weights").get<std::vector<std::string>>()});
    }
    return all;
}

/// Runs `read` on the parsed line; whatever is wrong with it is told with its place.
template <class Read>
auto parse(std::string_view line, const std::string& where, Read read) {
    try {
        check_json_depth(line, where);
        return read(json::parse(line));
    } catch (const json::exception& e) {
        fail(ErrorKind::kData, "{}: damaged trace: {}", where, e.what());
    } catch (const Error& e) {
        fail(ErrorKind::kData, "{}: damaged trace: {}", where, e.what());
    }
}

}  // namespace

std::string trace_line(const TraceStart& s) {
    const std::string tensors = joined(s.tensors, [](const TraceTensor& tensor) {
        const std::string shape = joined(tensor.shape, [](int64_t extent) { return fmt::format("{}", extent); });
        return fmt::format("{{\"name\":{},\"shape\":[{}]}}", json_string(tensor.name), shape);
    });
    const std::string buffers = s.buffers > 0 ? fmt::format(",\"buffers\":{}", s.buffers) : "";
    return fmt::format("{}{}{}true,\"shards\":{},\"data\":{},\"tensors\":[{}]{},\"weights\":[{}]{}}}", kStep, s.step,
                       kStart, s.shards, json_string(s.data), tensors, buffers, hashes(s.weights),
                       apart_field(s.apart));
}

std::string trace_line(const TraceStep& s) {
    const std::string own = joined(s.own, [](const TraceNode& node) {
        return fmt::format("{{\"shards\":[{},{}],\"rank\":{},\"loss\":{},\"gradient\":[{}]}}", node.shards.begin,
                           node.shards.end, node.rank, json_number(node.loss), hashes(node.gradient));
    });
    return fmt::format(
        "{}{},\"epoch\":{},\"samples\":{},\"indices\":\"{:016x}\",\"data\":\"{:016x}\",\"loss\":{},\"lr\":{},"
        "\"gradient\":[{}],\"weights\":[{}]{}{}[{}]}}",
        kStep, s.step, s.epoch, s.samples, s.indices, s.data, json_number(s.loss), json_number(s.lr),
        hashes(s.gradient), hashes(s.weights), apart_field(s.apart), kOwn, own);
}

std::string_view common_part(std::string_view line) {
    return line.substr(0, line.find(kOwn));
}

int64_t step_of_line(std::string_view line) {
    if (!line.starts_with(kStep)) return -1;
    int64_t step = -1;
    const char* const digits = line.data() + kStep.size();
    const auto [end, error] = std::from_chars(digits, line.data() + line.size(), step);
    const bool whole = error == std::errc() && end != line.data() + line.size() && *end == ',';
    return whole && step >= 0 ? step : -1;
}

bool is_start_line(std::string_view line) {
    return line.find(kStart) == line.find(',');
}

TraceStart parse_trace_start(std::string_view line, const std::string& where) {
    return parse(line, where, [](const json& j) {
        TraceStart s;
        s.step = j.at("step");
        s.shards = j.at("shards");
        s.data = j.at("data");
        for (const json& tensor : j.at("tensors")) {
            s.tensors.push_back({tensor.at("name"), tensor.at("shape").get<std::vector<int64_t>>()});
        }
        s.weights = hashes_of(j.at("weights"));
        s.apart = apart_of(j);
        s.buffers = j.value("buffers", 0);
        if (s.buffers < 0 || static_cast<std::size_t>(s.buffers) > s.tensors.size()) {
            fail(ErrorKind::kData, "{} buffers among {} tensors", s.buffers, s.tensors.size());
        }
        if (s.weights.size() != s.tensors.size()) {
            fail(ErrorKind::kData, "{} weights of {} tensors", s.weights.size(), s.tensors.size());
        }
        return s;
    });
}

TraceStep parse_trace_step(std::string_view line, const std::string& where) {
    return parse(line, where, [](const json& j) {
        TraceStep s;
        s.step = j.at("step");
        s.epoch = j.at("epoch");
        s.samples = j.at("samples");
        s.indices = hash_of(j.at("indices"));
        s.data = hash_of(j.at("data"));
        s.loss = j.at("loss");
        s.lr = j.at("lr");
        s.gradient = hashes_of(j.at("gradient"));
        s.weights = hashes_of(j.at("weights"));
        s.apart = apart_of(j);
        for (const json& node : j.at("own")) {
            s.own.push_back({{node.at("shards").at(0), node.at("shards").at(1)},
                             node.at("rank"),
                             node.at("loss"),
                             hashes_of(node.at("gradient"))});
        }
        return s;
    });
}

}  // namespace lockstep

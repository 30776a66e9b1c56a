#include "train/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "io/files.hpp"

namespace lockstep {
namespace {

std::string text_of(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TraceCut cut_trace(const std::string& path, int64_t step) {
    TraceCut cut;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return cut;
    const std::string text = text_of(path);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        if (end == std::string::npos) break;
        const int64_t found = step_of_line(std::string_view(text).substr(begin, end - begin));
        if (found <= cut.step || found > step) break;
        cut = {static_cast<int64_t>(end + 1), found};
        begin = end + 1;
    }
    return cut;
}

TraceFile TraceFile::read(const std::string& path) {
    TraceFile trace;
    trace.path_ = path;
    trace.text_ = text_of(path);
    const std::string_view text = trace.text_;
    int64_t number = 0;
    int64_t before = -1;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        if (end == std::string_view::npos) break;
        const Line line{begin, end, ++number};
        const std::string_view content = text.substr(begin, end - begin);
        const int64_t step = step_of_line(content);
        if (step < 0) fail(ErrorKind::kData, "{}: damaged trace: no step", trace.where(line));
        if (step <= before)
            fail(ErrorKind::kData, "{}: damaged trace: step {} after {}", trace.where(line), step, before);
        if (number == 1) {
            trace.start_ = parse_trace_start(content, trace.where(line));
        } else if (!is_start_line(content)) {  // a later start: traced again after a part that was not
            trace.steps_.push_back(step);
            trace.lines_.push_back(line);
        }
        before = step;
        begin = end + 1;
    }
    if (number == 0) fail(ErrorKind::kData, "{}: damaged trace: it has no line", path);
    return trace;
}

std::optional<std::size_t> TraceFile::find(int64_t step) const {
    const auto found = std::lower_bound(steps_.begin(), steps_.end(), step);
    if (found == steps_.end() || *found != step) return {};
    return static_cast<std::size_t>(found - steps_.begin());
}

std::string TraceFile::where(const Line& line) const {
    return fmt::format("{}:{}", path_, line.number);
}

std::string_view TraceFile::line(int64_t step) const {
    const std::optional<std::size_t> at = find(step);
    if (!at) return {};
    const Line& line = lines_[*at];
    return std::string_view(text_).substr(line.begin, line.end - line.begin);
}

TraceStep TraceFile::step(int64_t step) const {
    const std::optional<std::size_t> at = find(step);
    if (!at) fail(ErrorKind::kRuntime, "{}: step {} is asked for and not there", path_, step);
    TraceStep read = parse_trace_step(line(step), where(lines_[*at]));
    const std::size_t tensors = start_.tensors.size();
    const std::size_t trainable = tensors - static_cast<std::size_t>(start_.buffers);
    bool whole = read.gradient.size() == trainable && read.weights.size() == tensors;
    for (const TraceNode& node : read.own) whole = whole && node.gradient.size() == trainable;
    if (!whole) fail(ErrorKind::kData, "{}: damaged trace: not one hash for each tensor", where(lines_[*at]));
    return read;
}

}  // namespace lockstep

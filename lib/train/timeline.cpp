#include "train/timeline.hpp"

#include <fmt/format.h>

#include <array>

#include "core/log.hpp"
#include "io/json_number.hpp"
#include "train/agreement.hpp"
#include "train/clock_offset.hpp"
#include "train/step_engine.hpp"

namespace lockstep {
namespace {

constexpr int kTag = 840;
constexpr int64_t kStepsBetween = 1024;               // gatherings
constexpr std::size_t kMostSpans = 10;                // of a step and what follows it: one of each stage
constexpr std::size_t kBlock = std::size_t{1} << 16;  // bytes of text written at once

constexpr std::array<const char*, 10> kNames{"step",      "input",    "forward",    "backward",      "reduce",
                                             "optimizer", "evaluate", "checkpoint", "replica check", "gather trace"};

/// Chrome counts in microseconds; three decimals keep every nanosecond, so that spans nest in the file as they did.
void append_microseconds(std::string& text, int64_t ns) {
    const fmt::format_int whole(ns / 1000), thousandths(1000 + ns % 1000);
    text.append(whole.data(), whole.size()).append(".").append(thousandths.data() + 1, 3);
}

}  // namespace

Timeline::Timeline(Communicator& comm, const std::string& path, Backend* device) : comm_(comm), device_(device) {
    agree_on_first(comm, [&] { file_.emplace(path); });
    spans_.reserve(static_cast<std::size_t>(kStepsBetween) * kMostSpans);
    const int64_t origin = std::stoll(comm.broadcast(0, std::to_string(monotonic_ns())));
    const ClockOffset offset = clock_offset(comm, monotonic_clock_name(), [] { return monotonic_ns(); });
    shift_ns_ = offset.ns - origin;
    const std::vector<std::string> hosts = comm.all_gather(host_name());
    const std::vector<std::string> uncertainties = comm.all_gather(std::to_string(offset.uncertainty_ns));
    if (comm.rank() != 0) return;
    arrived_.reserve(comm.size() > 1 ? spans_.capacity() : 0);
    text_.reserve(2 * kBlock);
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    const char* separator = "\n";
    for (std::size_t r = 0; r < hosts.size(); ++r) {
        const auto describe = [&](const char* what, const std::string& entry) {
            text_ += fmt::format("{}{{\"name\":\"{}\",\"ph\":\"M\",\"pid\":{},\"tid\":0,\"args\":{{{}}}}}", separator,
                                 what, r, entry);
            separator = ",\n";
        };
        describe("process_name", "\"name\":" + json_string(fmt::format("rank {} on {}", r, hosts[r])));
        describe("process_sort_index", fmt::format("\"sort_index\":{}", r));
        describe("thread_name", "\"name\":\"training\"");
        if (uncertainties[r] == "0") continue;
        describe("process_labels",
                 fmt::format("\"labels\":\"clock within {:.1f} µs of rank 0's\"", 1e-3 * std::stod(uncertainties[r])));
    }
}

Timeline::~Timeline() {
    close_after(ErrorKind::kRuntime);
}

int64_t Timeline::now() const {
    return monotonic_ns() + shift_ns_;
}

void Timeline::add(Stage stage, int64_t step, int64_t begin, int64_t end) {
    spans_.push_back({stage, step, begin, end});
}

/// Where the device works on its own, a stage ends when its work does: stages that would overlap are shown one after
/// the other.
void Timeline::end_stage(Stage stage) {
    if (device_ != nullptr) device_->wait(device_->main());
    const int64_t end = now();
    add(stage, step_, stage_begin_, end);
    stage_begin_ = end;
    spans_[open_step_].end = end;
}

void Timeline::step_begins() {
    stage_begin_ = now();
    open_step_ = spans_.size();
    add(Stage::kStep, step_ + 1, stage_begin_, stage_begin_);  // before its stages: a viewer takes it for their parent
}

void Timeline::batch_read(const Batch& batch) {
    step_ = batch.at.update;
    spans_[open_step_].step = step_;
    end_stage(Stage::kInput);
}

void Timeline::forward_done() {
    end_stage(Stage::kForward);
}

void Timeline::partials_final(int64_t first, int64_t /*end*/, std::span<float* const> partial) {
    if (first == 0 && !partial.empty()) end_stage(Stage::kBackward);
}

void Timeline::reduced(const Batch& /*batch*/, const float* /*total*/) {
    end_stage(Stage::kReduce);
}

void Timeline::updated(const StepOutcome& outcome, float* /*weights*/) {
    end_stage(Stage::kOptimizer);
    if (outcome.at.update % kStepsBetween == 0) gather();
}

void Timeline::gather() {
    const int64_t begin = now();
    if (comm_.rank() != 0) {
        const uint64_t count = spans_.size();
        comm_.send_recv(0, std::as_bytes(std::span(&count, 1)), Communicator::kNobody, {}, kTag);
        comm_.send_recv(0, std::as_bytes(std::span(spans_)), Communicator::kNobody, {}, kTag);
    } else {
        write_spans(0, spans_);
        for (int rank = 1; rank < comm_.size(); ++rank) {
            uint64_t count = 0;
            comm_.send_recv(Communicator::kNobody, {}, rank, std::as_writable_bytes(std::span(&count, 1)), kTag);
            arrived_.resize(count);
            comm_.send_recv(Communicator::kNobody, {}, rank, std::as_writable_bytes(std::span(arrived_)), kTag);
            write_spans(rank, arrived_);
        }
    }
    spans_.clear();
    add(Stage::kGather, step_, begin, now());
}

void Timeline::write_spans(int rank, std::span<const Span> spans) {
    // What most of an event consists of is made once: a small step should not be outweighed by its spans.
    std::array<std::string, kNames.size()> starts;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        starts[i] = fmt::format(
            ",\n{{\"name\":\"{}\",\"cat\":\"train\",\"ph\":\"X\",\"pid\":{},\"tid\":0,\"ts\":", kNames[i], rank);
    }
    for (const Span& span : spans) {
        text_ += starts[static_cast<std::size_t>(span.stage)];
        append_microseconds(text_, span.begin);
        text_ += ",\"dur\":";
        append_microseconds(text_, span.end - span.begin);
        text_ += ",\"args\":{\"step\":";
        const fmt::format_int step(span.step);
        text_.append(step.data(), step.size()).append("}}");
        if (text_.size() >= kBlock) write_text();
    }
}

/// Training is worth more than its trace: where that cannot be written, the run goes on, and close() tells.
void Timeline::write_text() {
    if (file_) {
        try {
            file_->write(std::as_bytes(std::span(text_)));
        } catch (const Error& e) {
            failure_ = e.what();
            file_.reset();
            warn("{}; the run goes on without its trace", failure_);
        }
    }
    text_.clear();
}

void Timeline::finish_file() {
    if (!file_) throw Error(ErrorKind::kRuntime, failure_);
    text_ += "\n]}\n";
    file_->write(std::as_bytes(std::span(text_)));
    file_->commit();
}

void Timeline::close() {
    closed_ = true;
    gather();
    agree_on_first(comm_, [&] { finish_file(); });
}

void Timeline::close_after(ErrorKind kind) noexcept {
    if (closed_) return;
    try {
        if (kind != ErrorKind::kRuntime) return close();
        closed_ = true;
        if (comm_.rank() != 0) return;
        write_spans(0, spans_);
        finish_file();
    } catch (...) {
        // What ended the run is what is told.
    }
}

}  // namespace lockstep

#include "train/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/log.hpp"

namespace lockstep {
namespace {

int terminal_columns(int fd) {
    winsize size{};
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
    return size.ws_col;
}

std::string with_commas(int64_t value) {
    std::string digits = std::to_string(value);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    return digits;
}

std::string clock_text(double seconds) {
    const auto s = static_cast<int64_t>(std::min(seconds, 1e9) + 0.5);
    if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
    return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

ProgressOptions choose_progress(const std::string& wanted, bool under_mpirun, bool color) {
    ProgressOptions options;
    options.color = color;
    if (wanted == "none") {
        options.style = ProgressStyle::kNone;
        return options;
    }
    const int bar_fd = under_mpirun ? STDOUT_FILENO : STDERR_FILENO;
    const int columns = terminal_columns(bar_fd);
    if (wanted == "bar" || (wanted == "auto" && columns > 0)) {
        options.style = ProgressStyle::kBar;
        options.fd = bar_fd;
        options.columns = columns > 0 ? columns : 80;
    }
    return options;
}

std::string progress_text(const ProgressFacts& f) {
    return fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}  lr {:.4g}  {} samples/s  comm {:.0f}%  eta {}", f.epoch,
                       f.epochs, f.step, f.steps, f.loss, f.lr, with_commas(std::llround(f.samples_per_s)),
                       100 * f.comm_share, clock_text(f.eta_s));
}

std::string eval_text(const EvalResult& r) {
    // Of nothing there is no share: a class that was never predicted has no precision.
    const auto share = [](double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); };
    // A NaN has a sign that means nothing.
    std::string text = fmt::format("{}: loss {:.4f}", r.split, std::isnan(r.loss) ? std::fabs(r.loss) : r.loss);
    text += r.mse ? fmt::format("  mse {:.4f}", *r.mse) : fmt::format("  accuracy {:.4f}", r.accuracy);
    if (r.top5) text += fmt::format("  top-5 {:.4f}", *r.top5);
    if (r.auc) text += fmt::format("  auc {}", share(*r.auc));
    if (r.precision) text += fmt::format("  precision {}", share(*r.precision));
    if (r.recall) text += fmt::format("  recall {}", share(*r.recall));
    return text + fmt::format("  ({} samples, step {})", with_commas(r.count), r.step);
}

void Progress::show(const ProgressFacts& facts) {
    if (options_.style == ProgressStyle::kNone || log_level() == LogLevel::kQuiet) return;
    if (options_.style == ProgressStyle::kPlain) {
        write(progress_text(facts) + "\n");
        return;
    }
    // A bar as wide as the text leaves room for, redrawn in place.
    const std::string text = progress_text(facts);
    const auto room = static_cast<std::size_t>(options_.columns) - 1;
    std::string drawn = text.substr(0, room);
    if (room >= text.size() + 12) {
        const std::size_t width = std::min<std::size_t>(room - text.size() - 3, 30);
        const auto full = static_cast<std::size_t>(static_cast<double>(width) * static_cast<double>(facts.step) /
                                                   static_cast<double>(std::max<int64_t>(facts.steps, 1)));
        drawn = fmt::format("[{}{:#<{}}{:.<{}}{}] {}", options_.color ? "\x1b[32m" : "", "", full, "", width - full,
                            options_.color ? "\x1b[0m" : "", text);
    }
    write(fmt::format("\r\x1b[K{}", drawn));
    drawn_ = true;
}

void Progress::line(const std::string& text) {
    if (options_.style == ProgressStyle::kNone || log_level() == LogLevel::kQuiet) return;
    write(fmt::format("{}{}\n", drawn_ ? "\r\x1b[K" : "", text));
    drawn_ = false;
}

void Progress::close() {
    if (drawn_) write("\n");
    drawn_ = false;
}

void Progress::write(const std::string& text) const {
    // Progress is for people: a closed terminal is no reason to stop a run.
    const ssize_t written = ::write(options_.fd, text.data(), text.size());
    (void)written;
}

}  // namespace lockstep

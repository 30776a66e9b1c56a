#include "data/table_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "data/recognise.hpp"
#include "io/cache.hpp"
#include "io/files.hpp"
#include "io/source_files.hpp"
#include "io/unpack.hpp"

namespace lockstep {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;
constexpr int64_t kUsualRatio = 16;  // of packed text, with room to spare

}  // namespace

TableText::TableText(std::string path, const std::string& cache, int64_t memory)
    : path_(std::move(path)), fingerprint_(file_fingerprint(path_)) {
    if (!is_gzipped(path_)) {
        file_.emplace(path_);
    } else if (RandomFile(path_).size() <= memory / kUsualRatio) {
        held_ = gunzip(read_file(path_), path_);
    } else {
        file_.emplace(cached_copy(cache, cache_name(path_, fingerprint_),
                                  [&](const std::string& copy) { unpack_file(path_, copy); }));
    }
    size_ = file_ ? file_->size() : static_cast<int64_t>(held_.size());
    if (size_ == 0) fail(ErrorKind::kData, "{}: empty", path_);
    check_start();
}

/// Of what is no text a reader of fields or numbers would only say that they are none.
void TableText::check_start() const {
    constexpr int64_t kLookedAt = int64_t{1} << 12;
    std::string scratch;
    const std::string_view start = read(0, kLookedAt, scratch).substr(0, kLookedAt);
    if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff")) {
        fail(ErrorKind::kData, "{}: UTF-16 (byte order mark at 0x0); save it as UTF-8", path_);
    }
    if (const std::string words = foreign_kind(std::as_bytes(std::span(start))); !words.empty()) {
        fail(ErrorKind::kData, "{}: no text: {}", path_, words);
    }
    if (const size_t zero = start.find('\0'); zero != std::string_view::npos) {
        fail(ErrorKind::kData, "{}: no text: a byte 00 at 0x{:x}; is it a table, in UTF-8?", path_, zero);
    }
}

std::string_view TableText::read(int64_t offset, int64_t bytes, std::string& scratch) const {
    if (!file_) {
        const std::string_view all(reinterpret_cast<const char*>(held_.data()), held_.size());
        return all.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
    }
    scratch.resize(static_cast<size_t>(std::min(bytes, size_ - offset)));
    file_->read(offset, std::as_writable_bytes(std::span(scratch)));
    return scratch;
}

std::optional<std::string_view> LineScan::next() {
    if (next_ == text_.size()) return std::nullopt;
    const auto rest_of = [&] { return piece_.substr(static_cast<size_t>(next_ - piece_offset_)); };
    std::string_view rest = rest_of();
    size_t end = rest.find('\n');
    for (int64_t wanted = kPiece; end == std::string_view::npos; wanted *= 2) {
        const bool last = next_ + static_cast<int64_t>(rest.size()) == text_.size();
        if (last && !rest.empty()) break;
        piece_ = text_.read(next_, wanted, scratch_);
        piece_offset_ = next_;
        rest = rest_of();
        end = rest.find('\n');
    }
    offset_ = next_;
    ++number_;
    std::string_view line = rest.substr(0, end);
    next_ += static_cast<int64_t>(line.size()) + (end == std::string_view::npos ? 0 : 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

std::string_view without_blanks(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::optional<double> parse_number(std::string_view text) {
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

std::string shown(std::string_view text) {
    constexpr size_t kShort = 60;
    size_t end = std::min(text.size(), kShort);
    const auto inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };  // of UTF-8
    while (end < text.size() && end > kShort - 3 && inside(end)) --end;
    std::string line;
    for (const char c : text.substr(0, end)) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return end < text.size() ? line + "…" : line;
}

}  // namespace lockstep

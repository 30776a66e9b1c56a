// The messages: Example { Features features = 1; }  Features { map<string, Feature> feature = 1; }
// Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }, each list { repeated value = 1; }, where numbers
// may be packed. A map entry is a message { key = 1; value = 2; }; of equal keys the last holds.
#include "data/tf_example.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "data/table_text.hpp"

namespace lockstep {
namespace {

constexpr const char* kKindNames[] = {"nothing", "byte strings", "floats", "integers"};

struct WireField {
    uint32_t number = 0;
    uint32_t type = 0;                 // 0: varint, 1: 8 bytes, 2: bytes of a length, 5: 4 bytes
    uint64_t varint = 0;               // of type 0
    std::span<const std::byte> bytes;  // of the others
};

/// Field by field through a message, which starts at `offset` of the record.
class WireReader {
  public:
    WireReader(std::span<const std::byte> message, std::span<const std::byte> record)
        : message_(message), offset_(static_cast<size_t>(message.data() - record.data())) {}

    bool next(WireField& field) {
        if (at_ == message_.size()) return false;
        const uint64_t tag = varint();
        field.number = static_cast<uint32_t>(tag >> 3);
        field.type = static_cast<uint32_t>(tag & 7);
        switch (field.type) {
            case 0:
                field.varint = varint();
                break;
            case 1:
                field.bytes = take(8);
                break;
            case 2:
                field.bytes = take(varint());
                break;
            case 5:
                field.bytes = take(4);
                break;
            default:
                fail_here("a field of wire type {}", field.type);
        }
        return true;
    }

    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at_ == message_.size()) fail_here("its message ends in the middle of a number");
            const auto byte = std::to_integer<uint64_t>(message_[at_++]);
            value |= (byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        fail_here("a number of more than ten bytes");
    }

  private:
    std::span<const std::byte> take(uint64_t count) {
        if (count > message_.size() - at_) {
            fail_here("{} bytes are announced where {} are left", count, message_.size() - at_);
        }
        const auto bytes = message_.subspan(at_, static_cast<size_t>(count));
        at_ += static_cast<size_t>(count);
        return bytes;
    }
    template <class... Args>
    [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) const {
        fail(ErrorKind::kData, "no tf.Example: at byte {} of the record {}", offset_ + at_,
             fmt::format(format, std::forward<Args>(args)...));
    }

    std::span<const std::byte> message_;
    size_t offset_;
    size_t at_ = 0;
};

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TfExample::Feature read_entry(std::span<const std::byte> entry, std::span<const std::byte> record) {
    TfExample::Feature feature;
    WireField field, kind;
    for (WireReader reader(entry, record); reader.next(field);) {
        if (field.type != 2) continue;
        if (field.number == 1) feature.name = text_of(field.bytes);
        if (field.number != 2) continue;
        for (WireReader lists(field.bytes, record); lists.next(kind);) {
            if (kind.type != 2 || kind.number < 1 || kind.number > 3) continue;
            feature.kind = static_cast<int>(kind.number);
            feature.values = kind.bytes;
        }
    }
    return feature;
}

}  // namespace

TfExample::TfExample(std::span<const std::byte> bytes) {
    WireField field, entry;
    for (WireReader example(bytes, bytes); example.next(field);) {
        if (field.number != 1 || field.type != 2) continue;
        for (WireReader features(field.bytes, bytes); features.next(entry);) {
            if (entry.number == 1 && entry.type == 2) features_.push_back(read_entry(entry.bytes, bytes));
        }
    }
}

const TfExample::Feature& TfExample::find(std::string_view name, int kind) const {
    const auto last =
        std::find_if(features_.rbegin(), features_.rend(), [&](const Feature& f) { return f.name == name; });
    if (last == features_.rend()) {
        constexpr size_t kMostShown = 20;
        std::vector<std::string> names;
        for (const Feature& feature : features_) {
            if (names.size() < kMostShown) names.push_back(shown(feature.name));
        }
        std::sort(names.begin(), names.end());
        fail(ErrorKind::kData, "no feature {}; it has {}", name,
             names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
    }
    if (last->kind != kind) {
        fail(ErrorKind::kData, "feature {} holds {}, where {} are needed", name, kKindNames[last->kind],
             kKindNames[kind]);
    }
    return *last;
}

std::span<const std::byte> TfExample::bytes_of(std::string_view name) const {
    const Feature& feature = find(name, 1);
    std::optional<std::span<const std::byte>> value;
    int count = 0;
    WireField field;
    for (WireReader reader(feature.values, feature.values); reader.next(field);) {
        if (field.number != 1 || field.type != 2) continue;
        value = field.bytes;
        ++count;
    }
    if (count != 1) fail(ErrorKind::kData, "feature {} holds {} values, where one is needed", name, count);
    return *value;
}

int64_t TfExample::integer_of(std::string_view name) const {
    const Feature& feature = find(name, 3);
    uint64_t value = 0;
    int count = 0;
    WireField field;
    for (WireReader reader(feature.values, feature.values); reader.next(field);) {
        if (field.number != 1) continue;
        if (field.type == 0) {
            value = field.varint;
            ++count;
        } else if (field.type == 2) {  // packed: varints behind one another
            size_t ends = 0;
            for (const std::byte b : field.bytes) ends += std::to_integer<int>(b) < 0x80;
            for (WireReader packed(field.bytes, field.bytes); ends > 0; --ends, ++count) value = packed.varint();
        }
    }
    if (count != 1) fail(ErrorKind::kData, "feature {} holds {} values, where one is needed", name, count);
    return static_cast<int64_t>(value);
}

}  // namespace lockstep

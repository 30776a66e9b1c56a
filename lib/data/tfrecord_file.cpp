#include "data/tfrecord_file.hpp"

#include <array>
#include <limits>

#include "core/error.hpp"
#include "io/crc32c.hpp"

namespace lockstep {
namespace {

constexpr int64_t kHeader = 12, kFooter = 4;

template <class T>
T little_endian(std::span<const std::byte> bytes) {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(std::to_integer<T>(bytes[i]) << (8 * i));
    return value;
}

[[noreturn]] void fail_truncated(const std::string& path, int64_t record, int64_t offset, int64_t size) {
    fail(ErrorKind::kData,
         "{}: truncated: record {} starts at byte {}, and the file ends at byte {}, before the record does; fetch the "
         "file again",
         path, record, offset, size);
}

}  // namespace

bool starts_as_tfrecord(std::span<const std::byte> start) {
    if (start.size() < kHeader) return false;
    return masked_crc32c(start.first(8)) == little_endian<uint32_t>(start.subspan(8, 4));
}

int64_t end_of(const RecordPlace& place) {
    return place.offset + kHeader + int64_t{place.bytes} + kFooter;
}

RecordPlace read_record_header(const RandomFile& file, const std::string& path, int64_t record, int64_t offset) {
    std::array<std::byte, kHeader> header;
    if (file.size() - offset < kHeader) fail_truncated(path, record, offset, file.size());
    file.read(offset, header);
    const auto length = std::span(header).first(8);
    const auto stored = little_endian<uint32_t>(std::span(header).subspan(8));
    if (masked_crc32c(length) != stored) {
        fail(ErrorKind::kData,
             "{}: record {} at byte {}: the checksum of its length is {:08x}, and {:08x} is stored: {}", path, record,
             offset, masked_crc32c(length), stored,
             offset == 0 ? "this is no TFRecord file, or it is damaged" : "the file is damaged; fetch it again");
    }
    const auto bytes = little_endian<uint64_t>(length);
    if (bytes > static_cast<uint64_t>(file.size() - offset - kHeader) ||
        file.size() - offset - kHeader - static_cast<int64_t>(bytes) < kFooter) {
        fail_truncated(path, record, offset, file.size());
    }
    if (bytes > std::numeric_limits<uint32_t>::max()) {
        fail(ErrorKind::kData, "{}: record {} at byte {} has {} bytes; below 4 GiB are read", path, record, offset,
             bytes);
    }
    return {offset, static_cast<uint32_t>(bytes)};
}

void read_record(const RandomFile& file, const std::string& path, int64_t record, const RecordPlace& place,
                 std::vector<std::byte>& data) {
    data.resize(size_t{place.bytes} + kFooter);
    file.read(place.offset + kHeader, data);
    const auto stored = little_endian<uint32_t>(std::span(data).last(kFooter));
    data.resize(place.bytes);
    const uint32_t found = masked_crc32c(data);
    if (found != stored) {
        fail(ErrorKind::kData,
             "{}: record {} at byte {}: the checksum of its data (from byte {} on) is {:08x}, and {:08x} is stored: "
             "the file is damaged; fetch it again",
             path, record, place.offset, place.offset + kHeader, found, stored);
    }
}

}  // namespace lockstep

#include "data/idx_file.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/files.hpp"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are turned from big-endian");

constexpr size_t kMagicBytes = 4, kExtentBytes = 4;
constexpr int32_t kMostClasses = 1 << 20;

uint32_t big_endian(const std::vector<std::byte>& bytes, size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
    return value;
}

bool known(uint8_t type) {
    return type == 0x08 || type == 0x09 || (type >= 0x0b && type <= 0x0e);
}

std::vector<std::byte> unpacked(const std::string& path) {
    std::vector<std::byte> bytes = read_file(path);
    if (bytes.empty()) fail(ErrorKind::kData, "{}: empty: an IDX file (or one packed with gzip) is needed", path);
    if (!looks_gzipped(bytes)) return bytes;
    bytes = gunzip(bytes, path);
    if (looks_gzipped(bytes)) {
        fail(ErrorKind::kData,
             "{}: packed twice: unpacked once, it still is gzip data (1f 8b at 0x0); run gunzip on it once", path);
    }
    if (bytes.empty()) fail(ErrorKind::kData, "{}: empty: 0 bytes after unpacking, an IDX file is needed", path);
    return bytes;
}

void read_header(IdxArray& a) {
    const size_t size = a.file.size();
    if (size < kMagicBytes)
        fail(ErrorKind::kData, "{}: truncated: {} bytes, an IDX file starts with 4 bytes of magic", a.path, size);
    const auto type = std::to_integer<uint8_t>(a.file[2]);
    const auto dimensions = std::to_integer<size_t>(a.file[3]);
    if (a.file[0] != std::byte{0} || a.file[1] != std::byte{0} || !known(type) || dimensions == 0) {
        fail(
            ErrorKind::kData,
            "{}: wrong magic at 0x0: expected 00 00 TT DD (TT = type 08, 09, 0b, 0c, 0d or 0e; DD = dimensions), found "
            "{:02x} {:02x} {:02x} {:02x}: this is no IDX file",
            a.path, std::to_integer<int>(a.file[0]), std::to_integer<int>(a.file[1]), type, dimensions);
    }
    a.type = static_cast<IdxType>(type);
    a.start = kMagicBytes + dimensions * kExtentBytes;
    if (size < a.start) {
        fail(ErrorKind::kData, "{}: truncated: a header of {} bytes is expected ({} dimensions), {} bytes found",
             a.path, a.start, dimensions, size);
    }
    for (size_t d = 0; d < dimensions; ++d) a.extents.push_back(big_endian(a.file, kMagicBytes + d * kExtentBytes));
}

void check_size(const IdxArray& a) {
    const uint64_t found = a.file.size();
    uint64_t needed = idx_type_bytes(a.type);
    bool overflow = false;
    for (const int64_t extent : a.extents) {
        overflow = overflow || __builtin_mul_overflow(needed, static_cast<uint64_t>(extent), &needed);
    }
    overflow = overflow || __builtin_add_overflow(needed, a.start, &needed);
    if (overflow || found < needed) {
        fail(ErrorKind::kData,
             "{}: truncated: {} elements of {} (header at 0x0) need {} bytes, found {}; fetch the file again", a.path,
             a.extents_text(), idx_type_name(a.type), overflow ? "more than 2^64" : fmt::to_string(needed), found);
    }
    if (found > needed) {
        fail(ErrorKind::kData, "{}: {} bytes too many at 0x{:x}: {} elements of {} (header at 0x0) end there", a.path,
             found - needed, needed, a.extents_text(), idx_type_name(a.type));
    }
}

template <class Bits>
void swap_elements(IdxArray& a) {
    for (size_t at = a.start; at + sizeof(Bits) <= a.file.size(); at += sizeof(Bits)) {
        std::reverse(a.file.begin() + static_cast<std::ptrdiff_t>(at),
                     a.file.begin() + static_cast<std::ptrdiff_t>(at + sizeof(Bits)));
    }
}

template <class T>
std::vector<int32_t> labels_of(const IdxArray& a) {
    std::vector<int32_t> labels(static_cast<size_t>(a.extents[0]));
    for (size_t i = 0; i < labels.size(); ++i) {
        T value;
        std::memcpy(&value, a.elements() + i * sizeof(T), sizeof(T));
        // Written so that NaN is refused as well.
        if (!(static_cast<double>(value) >= 0 && static_cast<double>(value) < kMostClasses) ||
            static_cast<double>(value) != std::floor(static_cast<double>(value))) {
            fail(ErrorKind::kData,
                 "{}: label {} of sample {} at 0x{:x} is out of range: a whole number from 0 to {} is expected", a.path,
                 value, i, a.start + i * sizeof(T), kMostClasses - 1);
        }
        labels[i] = static_cast<int32_t>(value);
    }
    return labels;
}

}  // namespace

std::string_view idx_type_name(IdxType type) {
    switch (type) {
        case IdxType::kU8:
            return "u8";
        case IdxType::kS8:
            return "s8";
        case IdxType::kI16:
            return "i16";
        case IdxType::kI32:
            return "i32";
        case IdxType::kF32:
            return "f32";
        case IdxType::kF64:
            return "f64";
    }
    return "?";
}

size_t idx_type_bytes(IdxType type) {
    switch (type) {
        case IdxType::kU8:
        case IdxType::kS8:
            return 1;
        case IdxType::kI16:
            return 2;
        case IdxType::kI32:
        case IdxType::kF32:
            return 4;
        case IdxType::kF64:
            return 8;
    }
    return 1;
}

std::string IdxArray::extents_text() const {
    return fmt::format("{}", fmt::join(extents, "x"));
}

IdxArray read_idx(const std::string& path) {
    IdxArray array;
    array.path = path;
    array.file = unpacked(path);
    read_header(array);
    check_size(array);
    array.hash = hash64(array.file);
    switch (idx_type_bytes(array.type)) {
        case 2:
            swap_elements<uint16_t>(array);
            break;
        case 4:
            swap_elements<uint32_t>(array);
            break;
        case 8:
            swap_elements<uint64_t>(array);
            break;
        default:
            break;
    }
    return array;
}

IdxArray read_idx_header(const std::string& path) {
    IdxArray array;
    array.path = path;
    array.file = read_file_start(path, kMagicBytes + 255 * kExtentBytes);
    if (array.file.empty()) fail(ErrorKind::kData, "{}: empty: an IDX file is needed", path);
    read_header(array);
    array.file.clear();
    return array;
}

std::vector<int32_t> idx_labels(const IdxArray& array) {
    if (array.extents.size() != 1) {
        fail(ErrorKind::kData,
             "{}: labels have 1 dimension, this file has {} ({}, DD at 0x3); are images and labels swapped?",
             array.path, array.extents.size(), array.extents_text());
    }
    switch (array.type) {
        case IdxType::kU8:
            return labels_of<uint8_t>(array);
        case IdxType::kS8:
            return labels_of<int8_t>(array);
        case IdxType::kI16:
            return labels_of<int16_t>(array);
        case IdxType::kI32:
            return labels_of<int32_t>(array);
        case IdxType::kF32:
            return labels_of<float>(array);
        case IdxType::kF64:
            return labels_of<double>(array);
    }
    return {};
}

}  // namespace lockstep

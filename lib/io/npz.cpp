#include "io/npz.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "io/tensor_type.hpp"

namespace lockstep {
namespace {

// A zip file (PKWARE APPNOTE 6.3.10) of stored members, written here rather than by a library, since a library's choice
// of versions, attributes and time stamps would be part of the bytes and change with it.
constexpr uint64_t kNeedsZip64 = std::numeric_limits<uint32_t>::max();  // the value that says "look in the extra field"
constexpr uint16_t kNeedsZip64Count = std::numeric_limits<uint16_t>::max();
constexpr uint16_t kVersionPlain = 20, kVersionZip64 = 45, kUtf8Names = 1 << 11, kZip64Field = 1;
constexpr uint16_t kDate = (0 << 9) | (1 << 5) | 1;  // 1980-01-01 00:00, the earliest there is

/// Little-endian fields, one after the other.
class Record {
  public:
    Record& u16(uint64_t value) { return put(value, 2); }
    Record& u32(uint64_t value) { return put(value, 4); }
    Record& u64(uint64_t value) { return put(value, 8); }
    Record& text(std::string_view value) {
        bytes_.append(value);
        return *this;
    }
    std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

  private:
    Record& put(uint64_t value, int size) {
        for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
        return *this;
    }
    std::string bytes_;
};

struct Member {
    std::string name;
    uint32_t crc = 0;
    uint64_t size = 0;
    uint64_t offset = 0;  // of its local header
    bool zip64() const { return size >= kNeedsZip64 || offset >= kNeedsZip64; }
};

// The header of the .npy format 1.0, as NumPy writes it: room for 21 digits of the first extent, then spaces and a
// newline up to a multiple of 64.
std::string npy_header(const TensorView& tensor) {
    const TensorType* type = find_tensor_type(tensor.dtype);
    if (!type || type->numpy.empty()) {
        fail(ErrorKind::kUsage, "tensor {} is of type {}, which NumPy does not know; export it as safetensors",
             tensor.name, tensor.dtype);
    }
    const auto needed = tensor_bytes(*type, tensor.shape);
    if (!needed || *needed != tensor.bytes.size()) {
        fail(ErrorKind::kRuntime, "tensor {} of shape {} needs another number of bytes than the {} it has", tensor.name,
             shape_text(tensor.shape), tensor.bytes.size());
    }
    std::string shape;
    for (const int64_t extent : tensor.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
    if (tensor.shape.size() == 1) shape += ',';
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type->numpy, shape);
    if (!tensor.shape.empty()) text.append(21 - fmt::to_string(tensor.shape[0]).size(), ' ');
    constexpr size_t kMagic = 10, kAlignment = 64;
    text.append(kAlignment - (kMagic + text.size() + 1) % kAlignment, ' ');
    text += '\n';
    if (text.size() > std::numeric_limits<uint16_t>::max()) {
        fail(ErrorKind::kRuntime, "tensor {} has too many dimensions for a .npy header: {}", tensor.name,
             tensor.shape.size());
    }
    Record record;
    record.text("\x93NUMPY").text(std::string_view("\x01\x00", 2)).u16(text.size()).text(text);
    const auto bytes = record.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What local and central header share: version needed … name and extra lengths.
void common_fields(Record& record, const Member& m, bool sizes64, uint16_t extra) {
    const bool ascii =
        std::all_of(m.name.begin(), m.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    const uint64_t size = sizes64 ? kNeedsZip64 : m.size;
    record.u16(m.zip64() ? kVersionZip64 : kVersionPlain).u16(ascii ? 0 : kUtf8Names).u16(0).u16(0).u16(kDate);
    record.u32(m.crc).u32(size).u32(size).u16(m.name.size()).u16(extra);
}

Record local_header(const Member& m) {
    const bool big = m.size >= kNeedsZip64;
    Record record;
    record.u32(0x04034b50);
    common_fields(record, m, big, big ? 20 : 0);
    record.text(m.name);
    if (big) record.u16(kZip64Field).u16(16).u64(m.size).u64(m.size);
    return record;
}

Record central_header(const Member& m) {
    const bool big = m.size >= kNeedsZip64, far = m.offset >= kNeedsZip64;
    const auto field = static_cast<uint16_t>((big ? 16 : 0) + (far ? 8 : 0));
    constexpr uint16_t kMadeByUnix = 3 << 8;
    constexpr uint32_t kRegular0644 = 0100644u << 16;
    Record record;
    record.u32(0x02014b50).u16(kMadeByUnix | (m.zip64() ? kVersionZip64 : kVersionPlain));
    common_fields(record, m, big, field == 0 ? 0 : field + 4);
    record.u16(0).u16(0).u16(0).u32(kRegular0644).u32(far ? kNeedsZip64 : m.offset).text(m.name);
    if (field != 0) record.u16(kZip64Field).u16(field);
    if (big) record.u64(m.size).u64(m.size);
    if (far) record.u64(m.offset);
    return record;
}

Record end_of_directory(uint64_t members, uint64_t start, uint64_t size) {
    Record record;
    if (members >= kNeedsZip64Count || start >= kNeedsZip64 || size >= kNeedsZip64) {
        record.u32(0x06064b50).u64(44).u16(kVersionZip64).u16(kVersionZip64).u32(0).u32(0);
        record.u64(members).u64(members).u64(size).u64(start);
        record.u32(0x07064b50).u32(0).u64(start + size).u32(1);
    }
    const uint64_t count = std::min<uint64_t>(members, kNeedsZip64Count);
    record.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count);
    record.u32(std::min(size, kNeedsZip64)).u32(std::min(start, kNeedsZip64)).u16(0);
    return record;
}

}  // namespace

void write_npz(const std::string& path, const std::vector<TensorView>& tensors) {
    AtomicFile file(path);
    uint64_t offset = 0;
    const auto write = [&](std::span<const std::byte> bytes) {
        file.write(bytes);
        offset += bytes.size();
    };
    std::vector<Member> members;
    for (const TensorView& tensor : tensors) {
        const std::string header = npy_header(tensor);
        Member member{tensor.name + ".npy", 0, header.size() + tensor.bytes.size(), offset};
        member.crc = libdeflate_crc32(0, header.data(), header.size());
        if (!tensor.bytes.empty()) {  // libdeflate starts anew for a null pointer
            member.crc = libdeflate_crc32(member.crc, tensor.bytes.data(), tensor.bytes.size());
        }
        write(local_header(member).bytes());
        write(std::as_bytes(std::span(header)));
        write(tensor.bytes);
        members.push_back(std::move(member));
    }
    const uint64_t start = offset;
    for (const Member& member : members) write(central_header(member).bytes());
    write(end_of_directory(members.size(), start, offset - start).bytes());
    file.commit();
}

}  // namespace lockstep

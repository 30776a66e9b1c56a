#include "data/npz_zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr uint32_t kEndOfDirectory = 0x06054b50, kEndOfDirectory64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr int64_t kPiece = int64_t{1} << 20;

/// Little-endian numbers in a piece of the file, for which `offset` is where it starts.
class Fields {
  public:
    Fields(const RandomFile& file, int64_t offset, int64_t bytes) : offset_(offset) {
        if (offset < 0 || bytes < 0 || offset > file.size() || bytes > file.size() - offset) {
            fail(ErrorKind::kData, "{}: damaged: {} bytes at 0x{:x} are needed, the file ends at 0x{:x}", file.path(),
                 bytes, offset, file.size());
        }
        bytes_.resize(static_cast<size_t>(bytes));
        file.read(offset, bytes_);
    }
    uint64_t number(size_t at, size_t bytes) const {
        uint64_t value = 0;
        for (size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes_.at(at + i));
        return value;
    }
    uint32_t u32(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
    size_t u16(size_t at) const { return static_cast<size_t>(number(at, 2)); }
    int64_t i64(size_t at) const { return static_cast<int64_t>(number(at, 8)); }
    std::string text(size_t at, size_t bytes) const {
        return {reinterpret_cast<const char*>(bytes_.data()) + at, bytes};
    }
    size_t size() const { return bytes_.size(); }
    int64_t offset() const { return offset_; }

  private:
    std::vector<std::byte> bytes_;
    int64_t offset_;
};

struct Directory {
    int64_t offset = 0, bytes = 0, entries = 0;
};

Directory find_directory(const RandomFile& file) {
    constexpr int64_t kMostComment = 65535;
    const int64_t bytes = std::min<int64_t>(file.size(), kMostComment + static_cast<int64_t>(kEndBytes));
    const Fields tail(file, file.size() - bytes, bytes);
    for (size_t at = tail.size(); at-- > 0;) {
        if (at + kEndBytes > tail.size() || tail.u32(at) != kEndOfDirectory) continue;
        Directory found{tail.u32(at + 16), tail.u32(at + 12), static_cast<int64_t>(tail.u16(at + 10))};
        if (at < kLocatorBytes || tail.u32(at - kLocatorBytes) != kLocator64) return found;
        const Fields end(file, tail.i64(at - kLocatorBytes + 8), kEnd64Bytes);
        if (end.u32(0) != kEndOfDirectory64) break;
        return {end.i64(48), end.i64(40), end.i64(32)};
    }
    fail(ErrorKind::kData, "{}: no zip archive (its directory, 50 4b 05 06, is not at the end): truncated, or no .npz",
         file.path());
}

/// Sizes that do not fit into 32 bits stand in an extra field, in this order, only those that do not fit.
void read_extra(const Fields& extra, ZipMember& member, int64_t& header) {
    constexpr size_t kZip64 = 1;
    for (size_t at = 0; at + 4 <= extra.size();) {
        const size_t id = extra.u16(at);
        const size_t bytes = extra.u16(at + 2);
        at += 4;
        if (id == kZip64) {
            size_t next = at;
            for (int64_t* value : {&member.bytes, &member.packed_bytes, &header}) {
                if (*value != int64_t{UINT32_MAX} || next + 8 > at + bytes || next + 8 > extra.size()) continue;
                *value = extra.i64(next);
                next += 8;
            }
        }
        at += bytes;
    }
}

struct EndInflate {
    void operator()(z_stream* stream) const { inflateEnd(stream); }
};

}  // namespace

std::vector<ZipMember> zip_members(const RandomFile& file) {
    const Directory directory = find_directory(file);
    const Fields entries(file, directory.offset, directory.bytes);
    std::vector<ZipMember> members;
    size_t at = 0;
    for (int64_t i = 0; i < directory.entries; ++i) {
        if (at + kEntryBytes > entries.size() || entries.u32(at) != kDirectoryEntry) {
            fail(ErrorKind::kData, "{}: damaged zip directory at 0x{:x}", file.path(),
                 directory.offset + static_cast<int64_t>(at));
        }
        ZipMember& member = members.emplace_back();
        const size_t name = entries.u16(at + 28), extra = entries.u16(at + 30), comment = entries.u16(at + 32);
        if (at + kEntryBytes + name + extra > entries.size()) {
            fail(ErrorKind::kData, "{}: damaged zip directory at 0x{:x}", file.path(),
                 directory.offset + static_cast<int64_t>(at));
        }
        member.name = entries.text(at + kEntryBytes, name);
        member.crc = entries.u32(at + 16);
        member.packed_bytes = entries.u32(at + 20);
        member.bytes = entries.u32(at + 24);
        int64_t header = entries.u32(at + 42);
        const auto extra_at = entries.offset() + static_cast<int64_t>(at + kEntryBytes + name);
        read_extra(Fields(file, extra_at, static_cast<int64_t>(extra)), member, header);
        const size_t method = entries.u16(at + 10);
        if ((entries.u16(at + 8) & 1) != 0 || (method != 0 && method != 8)) {
            fail(ErrorKind::kData, "{}: member {} is {}; np.savez and np.savez_compressed make what is read here",
                 file.path(), member.name, method == 0 || method == 8 ? "encrypted" : "packed by no method known here");
        }
        member.deflated = method == 8;
        const Fields local(file, header, kLocalBytes);
        if (local.u32(0) != kLocalHeader) {
            fail(ErrorKind::kData, "{}: damaged: no member starts at 0x{:x}", file.path(), header);
        }
        member.offset = header + static_cast<int64_t>(kLocalBytes + local.u16(26) + local.u16(28));
        if (member.bytes < 0 || member.packed_bytes < 0 || (!member.deflated && member.bytes != member.packed_bytes)) {
            fail(ErrorKind::kData, "{}: damaged: member {} is said to have {} bytes, packed into {}", file.path(),
                 member.name, member.bytes, member.packed_bytes);
        }
        if (member.packed_bytes > file.size() - member.offset) {
            fail(ErrorKind::kData, "{}: truncated: member {} at 0x{:x} has {} bytes, the file ends at 0x{:x}",
                 file.path(), member.name, member.offset, member.packed_bytes, file.size());
        }
        at += kEntryBytes + name + extra + comment;
    }
    return members;
}

std::vector<std::byte> member_start(const RandomFile& file, const ZipMember& member, int64_t bytes) {
    std::vector<std::byte> start(static_cast<size_t>(std::min(bytes, member.bytes)));
    if (!member.deflated) {
        file.read(member.offset, start);
        return start;
    }
    constexpr int64_t kMostGrowth = 1 << 12;  // of what cannot be packed, and is
    std::vector<std::byte> packed(static_cast<size_t>(std::min(member.packed_bytes, bytes + kMostGrowth)));
    file.read(member.offset, packed);
    z_stream stream = {};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(ErrorKind::kRuntime, "zlib cannot start");
    const std::unique_ptr<z_stream, EndInflate> end(&stream);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(start.data());
    stream.avail_out = static_cast<uInt>(start.size());
    const int status = inflate(&stream, Z_SYNC_FLUSH);
    if ((status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) || stream.avail_out > 0) {
        fail(ErrorKind::kData, "{}: member {}: damaged after 0x{:x}: {}", file.path(), member.name, member.offset,
             stream.msg ? stream.msg : "it ends too early");
    }
    return start;
}

void unpack_member(const RandomFile& file, const ZipMember& member,
                   const std::function<void(std::span<const std::byte>)>& take) {
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(ErrorKind::kRuntime, "zlib did not start: out of memory");
    const std::unique_ptr<z_stream, EndInflate> owner(&stream);
    std::vector<std::byte> packed(static_cast<size_t>(std::min(kPiece, std::max<int64_t>(member.packed_bytes, 1))));
    std::vector<std::byte> unpacked(static_cast<size_t>(kPiece));
    uLong crc = crc32(0, nullptr, 0);
    int64_t made = 0;
    const auto hand_on = [&](std::span<const std::byte> piece) {
        crc = crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
        made += static_cast<int64_t>(piece.size());
        if (made <= member.bytes)
            take(piece);  // what is more is damage, or an attack: it is counted, and refused below
    };
    int status = Z_OK;
    for (int64_t at = 0; at < member.packed_bytes && status != Z_STREAM_END;) {
        const auto count = static_cast<size_t>(std::min<int64_t>(kPiece, member.packed_bytes - at));
        const auto piece = std::span(packed).first(count);
        file.read(member.offset + at, piece);
        at += static_cast<int64_t>(count);
        if (!member.deflated) {
            hand_on(piece);
            continue;
        }
        stream.next_in = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_in = static_cast<uInt>(count);
        do {
            stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
            stream.avail_out = static_cast<uInt>(unpacked.size());
            status = inflate(&stream, Z_NO_FLUSH);
            if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
                fail(ErrorKind::kData, "{}: member {}: damaged after 0x{:x}: {}", file.path(), member.name,
                     member.offset + at, stream.msg ? stream.msg : "zlib refuses it");
            }
            hand_on(std::span(unpacked).first(unpacked.size() - stream.avail_out));
        } while (stream.avail_out == 0);
    }
    if (made == member.bytes && crc == member.crc) return;
    fail(ErrorKind::kData, "{}: member {}: damaged: {} bytes with CRC {:08x}, but {} with {:08x} are expected",
         file.path(), member.name, made, static_cast<uint32_t>(crc), member.bytes, member.crc);
}

}  // namespace lockstep

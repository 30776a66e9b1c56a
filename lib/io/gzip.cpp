// gunzip of files.hpp: libdeflate unpacks (three times as fast as zlib); zlib, which works byte by byte, is asked where
// a file went wrong, so that the error can tell a truncated download from a damaged one.
#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "core/error.hpp"
#include "io/descriptor.hpp"
#include "io/files.hpp"
#include "io/shown_path.hpp"

namespace lockstep {
namespace {

struct FreeDecompressor {
    void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

struct EndInflate {
    void operator()(z_stream* stream) const { inflateEnd(stream); }
};

struct CloseGzip {
    void operator()(gzFile_s* file) const { gzclose(file); }
};

constexpr size_t kTrailer = 8;  // CRC-32 and unpacked size modulo 2^32, at the end of a member

// The size that the last four bytes promise. It is a hint: of several members it is the last one's, it wraps at 4 GiB,
// and in a truncated file it is noise, so that nothing absurd is allocated for it.
size_t first_guess(std::span<const std::byte> packed) {
    constexpr size_t kLeast = 1024, kRatio = 16;
    size_t promised = 0;
    for (size_t i = 0; packed.size() >= kTrailer && i < 4; ++i) {
        promised |= std::to_integer<size_t>(packed[packed.size() - 4 + i]) << (8 * i);
    }
    return std::max(kLeast, promised <= kRatio * packed.size() ? promised : 4 * packed.size());
}

[[noreturn]] void fail_member(std::span<const std::byte> packed, size_t start, const std::string& name) {
    z_stream stream{};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) fail(ErrorKind::kRuntime, "zlib did not start: out of memory");
    const std::unique_ptr<z_stream, EndInflate> owner(&stream);
    std::array<unsigned char, 1 << 16> unpacked{};
    size_t fed = start;
    uint64_t made = 0;
    int status = Z_OK;
    while (status == Z_OK || status == Z_BUF_ERROR) {
        if (stream.avail_in == 0) {
            const size_t piece = std::min<size_t>(packed.size() - fed, 1 << 20);
            if (piece == 0) {
                fail(ErrorKind::kData,
                     "{}: truncated: the gzip data of the member at byte 0x{:x} end in its middle, after {} packed "
                     "bytes "
                     "({} unpacked); fetch the file again",
                     name, start, packed.size() - start, made);
            }
            stream.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(packed.data() + fed));
            stream.avail_in = static_cast<unsigned>(piece);
            fed += piece;
        }
        stream.next_out = unpacked.data();
        stream.avail_out = unpacked.size();
        status = inflate(&stream, Z_NO_FLUSH);
        made += unpacked.size() - stream.avail_out;
    }
    fail(ErrorKind::kData,
         "{}: damaged gzip data at packed byte 0x{:x} ({} bytes unpacked till there): {}; fetch the file again", name,
         fed - stream.avail_in, made, stream.msg ? stream.msg : "libdeflate refuses it");
}

}  // namespace

bool looks_gzipped(std::span<const std::byte> bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> packed, const std::string& name) {
    const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(libdeflate_alloc_decompressor());
    if (!decompressor) fail(ErrorKind::kRuntime, "{}: out of memory while unpacking", name);
    if (packed.empty()) fail(ErrorKind::kData, "{}: empty: gzip data expected, 0 bytes found", name);

    std::vector<std::byte> bytes(first_guess(packed));
    size_t done = 0;
    for (size_t at = 0; at < packed.size();) {
        if (!looks_gzipped(packed.subspan(at))) {
            fail(ErrorKind::kData, "{}: {} bytes at 0x{:x} are no gzip data (a member starts with 1f 8b){}", name,
                 packed.size() - at, at,
                 at == 0 ? "" : "; remove what follows the last member, or fetch the file again");
        }
        size_t used = 0, made = 0;
        const auto result = libdeflate_gzip_decompress_ex(decompressor.get(), packed.data() + at, packed.size() - at,
                                                          bytes.data() + done, bytes.size() - done, &used, &made);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
            bytes.resize(2 * bytes.size());  // and this member again from its start
        } else if (result != LIBDEFLATE_SUCCESS) {
            fail_member(packed, at, name);
        } else {
            at += used;
            done += made;
        }
    }
    bytes.resize(done);
    return bytes;
}

// zlib's own reader: it unpacks no more than it is asked for, and passes on what is not packed.
std::vector<std::byte> read_file_start(const std::string& path, size_t bytes) {
    const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rbe"));
    if (!file) fail(ErrorKind::kData, "cannot open {}: {}", shown_path(path), system_reason(errno));
    std::vector<std::byte> start(bytes);
    const int count = gzread(file.get(), start.data(), static_cast<unsigned>(bytes));
    if (count < 0) {
        int code = Z_OK;
        const char* const reason = gzerror(file.get(), &code);
        if (code == Z_ERRNO) fail(ErrorKind::kData, "cannot read {}: {}", shown_path(path), system_reason(errno));
        fail(ErrorKind::kData, "{}: damaged gzip data: {}; fetch the file again", path, reason);
    }
    start.resize(static_cast<size_t>(count));
    return start;
}

}  // namespace lockstep

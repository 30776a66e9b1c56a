#include "io/unpack.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "io/descriptor.hpp"
#include "io/files.hpp"
#include "io/shown_path.hpp"

namespace lockstep {
namespace {

struct CloseGzip {
    void operator()(gzFile_s* file) const { gzclose(file); }
};

[[noreturn]] void fail_packed(gzFile_s* file, const std::string& path) {
    int code = Z_OK;
    const char* const reason = gzerror(file, &code);
    if (code == Z_ERRNO) fail(ErrorKind::kData, "cannot read {}: {}", shown_path(path), system_reason(errno));
    const char* const what = code == Z_BUF_ERROR ? "truncated" : "damaged";
    fail(ErrorKind::kData, "{}: {} gzip data after packed byte 0x{:x}: {}; fetch the file again", path, what,
         gzoffset(file), reason);
}

}  // namespace

bool is_gzipped(const std::string& path) {
    const Descriptor file(open_path(path, O_RDONLY | O_CLOEXEC));
    if (!file.open()) fail(ErrorKind::kData, "cannot open {}: {}", shown_path(path), system_reason(errno));
    std::array<std::byte, 2> start{};
    const ssize_t count = ::read(file.get(), start.data(), start.size());
    if (count < 0) fail(ErrorKind::kData, "cannot read {}: {}", shown_path(path), system_reason(errno));
    return looks_gzipped(std::span(start).first(static_cast<size_t>(count)));
}

void unpack_file(const std::string& path, const std::string& to) {
    constexpr unsigned kPiece = 1 << 20;
    const std::unique_ptr<gzFile_s, CloseGzip> packed(gzopen(path.c_str(), "rbe"));
    if (!packed) fail(ErrorKind::kData, "cannot open {}: {}", shown_path(path), system_reason(errno));
    gzbuffer(packed.get(), kPiece);
    Descriptor file(open_path(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.open()) fail_write(to, errno);
    std::vector<std::byte> piece(kPiece);
    for (;;) {
        const int count = gzread(packed.get(), piece.data(), kPiece);
        if (count < 0) fail_packed(packed.get(), path);
        if (count == 0) break;
        const auto made = std::span(piece).first(static_cast<size_t>(count));
        if (const int error = write_all(file.get(), made)) fail_write(to, error);
    }
    int code = Z_OK;  // the end of a truncated file is no error of gzread
    gzerror(packed.get(), &code);
    if (code != Z_OK) fail_packed(packed.get(), path);
    if (::fsync(file.get()) != 0) fail_write(to, errno);
    if (const int error = file.close()) fail_write(to, error);
}

}  // namespace lockstep

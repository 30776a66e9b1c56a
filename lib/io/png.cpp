// libpng jumps back on an error, as libjpeg does (jpeg.cpp): over C frames alone. No gamma and no colour profile is
// applied: a byte of the file is a byte of the picture.
#include "io/png.hpp"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr png_uint_32 kMostExtent = 65535;
constexpr int64_t kMostPixels = int64_t{1} << 27;

struct PngStructs {
    png_structp png = nullptr;
    png_infop info = nullptr;
    ~PngStructs() { png_destroy_read_struct(&png, &info, nullptr); }
};

class PngReader {
  public:
    PngReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {
        png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, note_and_jump, [](png_structp, png_const_charp) {});
        info_ = png_ ? png_create_info_struct(png_) : nullptr;
        if (!info_) {
            fail(ErrorKind::kRuntime, "{}: libpng did not start: out of memory", name);
        }
        if (!read_header()) fail_here();
        if (int64_t{size_.height} * size_.width > kMostPixels) {
            fail(ErrorKind::kData, "{}: {} x {} pixels: at most {} are read", name_, size_.width, size_.height,
                 kMostPixels);
        }
    }
    PngReader(const PngReader&) = delete;
    PngReader& operator=(const PngReader&) = delete;

    PictureSize size() const { return size_; }

    Picture decode() {
        if (!prepare()) fail_here();
        const int channels = png_get_channels(png_, info_);
        Picture picture{size_.height, size_.width, channels, {}};
        const size_t row = static_cast<size_t>(size_.width) * static_cast<size_t>(channels);
        if (png_get_rowbytes(png_, info_) != row || (channels != 1 && channels != 3)) {
            fail(ErrorKind::kData, "{}: a PNG of {} channels after decoding; 1 or 3 are expected", name_, channels);
        }
        picture.pixels.resize(row * static_cast<size_t>(size_.height));
        for (size_t y = 0; y < static_cast<size_t>(size_.height); ++y) {
            rows_.push_back(picture.pixels.data() + y * row);
        }
        if (!read_rows()) fail_here();
        return picture;
    }

  private:
    static void note_and_jump(png_structp png, png_const_charp message) {
        auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
        std::strncpy(reader->message_, message, sizeof(reader->message_) - 1);
        std::longjmp(reader->home_, 1);
    }
    static void take(png_structp png, png_bytep out, size_t count) {
        auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
        if (count > reader->bytes_.size() - reader->at_) {
            reader->at_ = reader->bytes_.size();
            reader->ended_ = true;
            png_error(png, "ends too early");
        }
        std::memcpy(out, reader->bytes_.data() + reader->at_, count);
        reader->at_ += count;
    }

    // The places that libpng jumps back to. They hold nothing but members.
    bool read_header() {
        if (setjmp(home_) != 0) return false;
        png_set_read_fn(png_, this, take);
        png_set_user_limits(png_, kMostExtent, kMostExtent);
        png_read_info(png_, info_);
        size_ = {static_cast<int>(png_get_image_height(png_, info_)),
                 static_cast<int>(png_get_image_width(png_, info_))};
        return true;
    }
    bool prepare() {
        if (setjmp(home_) != 0) return false;
        png_set_palette_to_rgb(png_);
        png_set_expand_gray_1_2_4_to_8(png_);
        png_set_strip_16(png_);
        png_set_strip_alpha(png_);
        png_set_interlace_handling(png_);
        png_read_update_info(png_, info_);
        return true;
    }
    bool read_rows() {
        if (setjmp(home_) != 0) return false;
        png_read_image(png_, rows_.data());
        return true;
    }

    [[noreturn]] void fail_here() const {
        if (ended_) {
            fail(ErrorKind::kData, "{}: truncated: the PNG data end in the middle of the picture, at byte 0x{:x}",
                 name_, at_);
        }
        fail(ErrorKind::kData, "{}: damaged PNG data before byte 0x{:x}: {}", name_, at_, message_);
    }

    std::span<const std::byte> bytes_;
    const std::string& name_;
    PngStructs structs_;
    png_structp& png_ = structs_.png;
    png_infop& info_ = structs_.info;
    PictureSize size_;
    std::vector<png_bytep> rows_;
    size_t at_ = 0;
    bool ended_ = false;
    std::jmp_buf home_{};
    char message_[128]{};
};

}  // namespace

bool looks_like_png(std::span<const std::byte> bytes) {
    constexpr unsigned char kMagic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return bytes.size() >= sizeof(kMagic) && std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) == 0;
}

Picture decode_png(std::span<const std::byte> bytes, const std::string& name) {
    return PngReader(bytes, name).decode();
}

PictureSize png_size(std::span<const std::byte> bytes, const std::string& name) {
    return PngReader(bytes, name).size();
}

}  // namespace lockstep

// libjpeg reports errors through a function that must not return: it jumps back here, over C frames alone (every object
// with a destructor lives outside), and an Error is thrown then. What it calls warnings (bad Huffman codes, stray bytes
// between markers) still gives a picture, as it does in every other reader; a file that ends too early does not.
#include "io/jpeg.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstring>
// After <cstdio>: it uses FILE without declaring it.
#include <jpeglib.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 27;  // 400 MB of colours: larger is damage, or an attack

struct Handler {
    jpeg_error_mgr manager;  // first: libjpeg knows this part alone
    std::jmp_buf home;
    std::array<char, JMSG_LENGTH_MAX> message;
};

struct Decompressor {
    jpeg_decompress_struct info{};
    ~Decompressor() { jpeg_destroy_decompress(&info); }  // of one that was never created: nothing
};

struct Source {
    jpeg_source_mgr manager;  // first, likewise
    const JOCTET* begin;
    bool ended;
};

class JpegReader {
  public:
    JpegReader(std::span<const std::byte> bytes, const std::string& name) : name_(name) {
        info_.err = jpeg_std_error(&handler_.manager);
        handler_.manager.error_exit = [](j_common_ptr info) {
            auto* handler = reinterpret_cast<Handler*>(info->err);
            info->err->format_message(info, handler->message.data());
            std::longjmp(handler->home, 1);
        };
        handler_.manager.emit_message = [](j_common_ptr, int) {};
        handler_.manager.output_message = [](j_common_ptr) {};
        source_.begin = reinterpret_cast<const JOCTET*>(bytes.data());
        source_.ended = false;
        source_.manager.next_input_byte = source_.begin;
        source_.manager.bytes_in_buffer = bytes.size();
        source_.manager.init_source = [](j_decompress_ptr) {};
        source_.manager.fill_input_buffer = fail_at_end;
        source_.manager.skip_input_data = [](j_decompress_ptr info, long count) {
            if (count <= 0) return;
            if (static_cast<size_t>(count) > info->src->bytes_in_buffer) fail_at_end(info);
            info->src->next_input_byte += count;
            info->src->bytes_in_buffer -= static_cast<size_t>(count);
        };
        source_.manager.resync_to_restart = jpeg_resync_to_restart;
        source_.manager.term_source = [](j_decompress_ptr) {};
        if (!created()) fail_here();
        if (!read_header()) fail_here();
        const int64_t pixels = int64_t{static_cast<int>(info_.image_height)} * static_cast<int>(info_.image_width);
        if (pixels > kMostPixels) {
            fail(ErrorKind::kData, "{}: {} x {} pixels: at most {} are read", name_, info_.image_width,
                 info_.image_height, kMostPixels);
        }
    }
    JpegReader(const JpegReader&) = delete;
    JpegReader& operator=(const JpegReader&) = delete;

    PictureSize size() const { return {static_cast<int>(info_.image_height), static_cast<int>(info_.image_width)}; }

    Picture decode() {
        switch (info_.jpeg_color_space) {
            case JCS_GRAYSCALE:
                info_.out_color_space = JCS_GRAYSCALE;
                break;
            case JCS_RGB:
            case JCS_YCbCr:
                info_.out_color_space = JCS_RGB;
                break;
            case JCS_CMYK:
            case JCS_YCCK:
                info_.out_color_space = JCS_CMYK;
                break;
            default:
                fail(ErrorKind::kData,
                     "{}: a JPEG of {} channels in no known colours; gray, colour and CMYK pictures are read", name_,
                     info_.num_components);
        }
        Picture picture{size().height, size().width, info_.out_color_space == JCS_GRAYSCALE ? 1 : 3, {}};
        const size_t row = static_cast<size_t>(picture.width) * static_cast<size_t>(picture.channels);
        picture.pixels.resize(row * static_cast<size_t>(picture.height));
        inks_.resize(info_.out_color_space == JCS_CMYK ? static_cast<size_t>(picture.width) * 4 : 0);
        to_ = picture.pixels.data();
        row_bytes_ = row;
        if (!read_rows()) fail_here();
        return picture;
    }

  private:
    static boolean fail_at_end(j_decompress_ptr info) {
        reinterpret_cast<Source*>(info->src)->ended = true;
        auto* handler = reinterpret_cast<Handler*>(info->err);
        std::longjmp(handler->home, 1);
    }

    // The three places that libjpeg jumps back to. They hold nothing but members.
    bool created() {
        if (setjmp(handler_.home) != 0) return false;
        jpeg_create_decompress(&info_);
        info_.src = &source_.manager;
        return true;
    }
    bool read_header() {
        if (setjmp(handler_.home) != 0) return false;
        jpeg_read_header(&info_, TRUE);
        return true;
    }
    bool read_rows() {
        if (setjmp(handler_.home) != 0) return false;
        info_.dct_method = JDCT_ISLOW;
        info_.do_fancy_upsampling = TRUE;
        jpeg_start_decompress(&info_);
        while (info_.output_scanline < info_.output_height) {
            JSAMPROW row = inks_.empty() ? to_ : inks_.data();
            jpeg_read_scanlines(&info_, &row, 1);
            if (!inks_.empty()) mix_inks();
            to_ += row_bytes_;
        }
        return true;
    }

    // Light = paper without ink: each colour times what black leaves of it, of 255, rounded. Adobe's programs, and so
    // nearly all others, store CMYK inverted and say so by a marker.
    void mix_inks() {
        const int inverted = info_.saw_Adobe_marker ? 0 : 255;
        for (size_t x = 0; x < inks_.size() / 4; ++x) {
            const uint8_t* ink = inks_.data() + 4 * x;
            for (size_t c = 0; c < 3; ++c) {
                const int product = (ink[c] ^ inverted) * (ink[3] ^ inverted);
                to_[3 * x + c] = static_cast<uint8_t>((product + 127) / 255);
            }
        }
    }

    [[noreturn]] void fail_here() const {
        const auto at = source_.manager.next_input_byte - source_.begin;
        if (source_.ended) {
            fail(ErrorKind::kData, "{}: truncated: the JPEG data end in the middle of the picture, near byte 0x{:x}",
                 name_, at);
        }
        fail(ErrorKind::kData, "{}: damaged JPEG data near byte 0x{:x}: {}", name_, at, handler_.message.data());
    }

    const std::string& name_;
    Decompressor decompressor_;
    jpeg_decompress_struct& info_ = decompressor_.info;
    Handler handler_{};
    Source source_{};
    std::vector<uint8_t> inks_;  // a row of CMYK
    uint8_t* to_ = nullptr;      // where the next row goes
    size_t row_bytes_ = 0;
};

}  // namespace

bool looks_like_jpeg(std::span<const std::byte> bytes) {
    return bytes.size() >= 3 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0xd8} &&
           bytes[2] == std::byte{0xff};
}

Picture decode_jpeg(std::span<const std::byte> bytes, const std::string& name) {
    return JpegReader(bytes, name).decode();
}

PictureSize jpeg_size(std::span<const std::byte> bytes, const std::string& name) {
    return JpegReader(bytes, name).size();
}

#define LOCKSTEP_TEXT_OF(words) #words
#define LOCKSTEP_TEXT(words) LOCKSTEP_TEXT_OF(words)
std::string jpeg_decoder() {
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " LOCKSTEP_TEXT(LIBJPEG_TURBO_VERSION);
#else
    return "libjpeg " LOCKSTEP_TEXT(JPEG_LIB_VERSION);
#endif
}

}  // namespace lockstep

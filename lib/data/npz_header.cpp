// The header of a .npy file: magic, version, and a Python dictionary of descr, fortran_order and shape
// (numpy.lib.format, versions 1.0 to 3.0).
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "data/npz_array.hpp"
#include "data/table_text.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

constexpr std::array<std::pair<std::string_view, NpyType>, 11> kTypes{{{"b1", NpyType::kBool},
                                                                       {"i1", NpyType::kI8},
                                                                       {"u1", NpyType::kU8},
                                                                       {"i2", NpyType::kI16},
                                                                       {"u2", NpyType::kU16},
                                                                       {"i4", NpyType::kI32},
                                                                       {"u4", NpyType::kU32},
                                                                       {"i8", NpyType::kI64},
                                                                       {"u8", NpyType::kU64},
                                                                       {"f4", NpyType::kF32},
                                                                       {"f8", NpyType::kF64}}};

/// What follows 'key': in the dictionary.
std::string_view value_of(std::string_view text, std::string_view key, const std::string& place) {
    const std::string quoted = fmt::format("'{}':", key);
    const size_t at = text.find(quoted);
    if (at != std::string_view::npos) return without_blanks(text.substr(at + quoted.size()));
    fail(ErrorKind::kData, "{}: its header at 0xa has no {}: {}", place, quoted, shown(text));
}

void read_type(std::string_view descr, NpyHeader& header, const std::string& place) {
    const std::string_view text = descr.starts_with('\'') ? descr.substr(1, descr.find('\'', 1) - 1) : descr;
    if (text.find('O') != std::string_view::npos) {
        fail(ErrorKind::kData,
             "{}: an array of Python objects ({}), which only unpickling could read and that can run any code; save "
             "numbers: x.astype(np.float32)",
             place, shown(text));
    }
    const std::string_view name = text.substr(0, 1).find_first_of("<>|=") == 0 ? text.substr(1) : text;
    for (const auto& [known, type] : kTypes) {
        if (known != name) continue;
        header.type = type;
        header.big_endian = text[0] == '>';
        return;
    }
    std::vector<std::string_view> names;
    for (const auto& entry : kTypes) names.push_back(entry.first);
    fail(ErrorKind::kData, "{}: elements of {}; one of {} is needed", place, shown(text), fmt::join(names, ", "));
}

void read_shape(std::string_view text, NpyHeader& header, const std::string& place) {
    const size_t end = text.find(')');
    if (!text.starts_with('(') || end == std::string_view::npos) {
        fail(ErrorKind::kData, "{}: its header has no shape: {}", place, shown(text));
    }
    std::string_view extents = text.substr(1, end - 1);
    int64_t elements = 1;
    while (!(extents = without_blanks(extents)).empty()) {
        int64_t extent = -1;
        const auto [rest, error] = std::from_chars(extents.data(), extents.data() + extents.size(), extent);
        if (error != std::errc() || extent < 0 ||
            __builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements) ||
            elements > std::numeric_limits<int64_t>::max() / 16) {
            fail(ErrorKind::kData, "{}: its header has a shape that is none: {}", place, shown(text));
        }
        header.shape.push_back(extent);
        extents.remove_prefix(static_cast<size_t>(rest - extents.data()));
        extents = without_blanks(extents);
        if (extents.starts_with(',')) extents.remove_prefix(1);
    }
}

}  // namespace

int64_t NpyHeader::elements() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return count;
}

std::string NpyHeader::shape_text() const {
    return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

size_t npy_bytes(NpyType type) {
    return static_cast<size_t>(npy_name(type)[1] - '0');
}

std::string npy_name(NpyType type) {
    for (const auto& [name, value] : kTypes) {
        if (value == type) return std::string(name);
    }
    return "??";
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& place) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!text.starts_with(kMagic) || text.size() < 10) {
        fail(ErrorKind::kData, "{}: no NumPy array: 93 4e 55 4d 50 59 is expected at 0x0", place);
    }
    const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(text[at])); };
    const size_t version = byte(6);
    if (version < 1 || version > 3) fail(ErrorKind::kData, "{}: version {} at 0x6; 1 to 3 are known", place, version);
    const size_t length_bytes = version == 1 ? 2 : 4;
    size_t length = 0;
    for (size_t i = 8 + length_bytes; i-- > 8 && i < text.size();) length = length << 8 | byte(i);
    const size_t start = 8 + length_bytes;
    if (start + length > text.size()) {
        fail(ErrorKind::kData, "{}: truncated: a header of {} bytes is expected at 0x{:x}, {} bytes follow", place,
             length, start, text.size() - std::min(start, text.size()));
    }
    const std::string_view dictionary = text.substr(start, length);
    NpyHeader header;
    header.bytes = static_cast<int64_t>(start + length);
    read_type(value_of(dictionary, "descr", place), header, place);
    header.fortran = value_of(dictionary, "fortran_order", place).starts_with("True");
    read_shape(value_of(dictionary, "shape", place), header, place);
    return header;
}

}  // namespace lockstep

#include "data/npz_array.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "data/npz_zip.hpp"
#include "io/atomic_file.hpp"
#include "io/cache.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int64_t kMostHeader = int64_t{1} << 16;

void swap_elements(std::span<std::byte> bytes, size_t each) {
    for (size_t at = 0; at + each <= bytes.size(); at += each) std::reverse(&bytes[at], &bytes[at] + each);
}

/// From the order in which the first index runs fastest to that in which the last one does.
std::vector<std::byte> to_c_order(std::span<const std::byte> from, const NpyHeader& header) {
    const size_t each = npy_bytes(header.type);
    std::vector<std::byte> to(from.size());
    std::vector<int64_t> index(header.shape.size());
    for (size_t at = 0; at < to.size(); at += each) {
        int64_t source = 0;
        for (size_t d = index.size(); d-- > 0;) source = source * header.shape[d] + index[d];
        std::memcpy(&to[at], &from[static_cast<size_t>(source) * each], each);
        for (size_t d = index.size(); d-- > 0 && ++index[d] == header.shape[d];) index[d] = 0;
    }
    return to;
}

template <class T, class Out>
void convert(std::span<const std::byte> from, std::span<Out> to) {
    for (size_t i = 0; i < to.size(); ++i) {
        T value;
        std::memcpy(&value, &from[i * sizeof(T)], sizeof(T));
        to[i] = static_cast<Out>(value);
    }
}

template <class Out>
void convert_as(NpyType type, std::span<const std::byte> from, std::span<Out> to) {
    switch (type) {
        case NpyType::kBool:
            for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] == std::byte{0} ? Out{0} : Out{1};
            return;
        case NpyType::kI8:
            return convert<int8_t>(from, to);
        case NpyType::kU8:
            return convert<uint8_t>(from, to);
        case NpyType::kI16:
            return convert<int16_t>(from, to);
        case NpyType::kU16:
            return convert<uint16_t>(from, to);
        case NpyType::kI32:
            return convert<int32_t>(from, to);
        case NpyType::kU32:
            return convert<uint32_t>(from, to);
        case NpyType::kI64:
            return convert<int64_t>(from, to);
        case NpyType::kU64:
            return convert<uint64_t>(from, to);
        case NpyType::kF32:
            return convert<float>(from, to);
        case NpyType::kF64:
            return convert<double>(from, to);
    }
}

std::vector<std::byte> contents(const RandomFile& file, const ZipMember& member) {
    std::vector<std::byte> bytes;
    bytes.reserve(static_cast<size_t>(member.bytes));
    unpack_member(file, member, [&](auto piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
    return bytes;
}

std::string array_name(const ZipMember& member) {
    return member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name;
}

ZipMember member_named(const RandomFile& file, const std::string& name) {
    std::vector<std::string> names;
    for (const ZipMember& member : zip_members(file)) {
        if (member.name == name + ".npy") return member;
        names.push_back(array_name(member));
    }
    fail(ErrorKind::kData, "{}: no array {} in it; it has {} (data.x and data.y name the arrays)", file.path(), name,
         names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

std::vector<NpzEntry> arrays_of(const RandomFile& npz) {
    std::vector<NpzEntry> arrays;
    for (const ZipMember& member : zip_members(npz)) {
        NpzEntry& entry = arrays.emplace_back();
        entry.name = array_name(member);
        try {
            const std::string place = fmt::format("{}: {}", npz.path(), entry.name);
            entry.header = parse_npy_header(member_start(npz, member, kMostHeader), place);
        } catch (const Error& error) {
            entry.fault = error.what();
        }
    }
    return arrays;
}

NpyArray::NpyArray(const std::string& path, const std::string& name, const std::string& cache, int64_t memory)
    : place_(path), file_(std::make_unique<RandomFile>(path)) {
    load(path, name, cache, memory);
}

void NpyArray::load(const std::string& path, const std::string& name, const std::string& cache, int64_t memory) {
    std::vector<std::byte> start(static_cast<size_t>(std::min<int64_t>(file_->size(), 4)));
    file_->read(0, start);
    if (start.empty()) fail(ErrorKind::kData, "{}: empty", path);
    if (start[0] == std::byte{0x93}) {
        if (file_->size() > memory) return open(0, file_->size());
        std::vector<std::byte> bytes(static_cast<size_t>(file_->size()));
        file_->read(0, bytes);
        return hold(std::move(bytes));
    }
    const ZipMember member = member_named(*file_, name);
    place_ = fmt::format("{}: {}", path, name);
    if (member.bytes <= memory) return hold(contents(*file_, member));
    if (!member.deflated) return open(member.offset, member.bytes);
    const std::string copy_name = fmt::format("{}.{}.npy", cache_name(path, file_fingerprint(path)), name);
    const std::string copy = cached_copy(cache, copy_name, [&](const std::string& to) {
        AtomicFile out(to);
        unpack_member(*file_, member, [&](auto piece) { out.write(piece); });
        out.commit();
    });
    file_ = std::make_unique<RandomFile>(copy);
    open(0, file_->size());
}

/// The array at [start, start + bytes) of the file, to be read from there.
void NpyArray::open(int64_t start, int64_t bytes) {
    std::vector<std::byte> head(static_cast<size_t>(std::min(bytes, kMostHeader)));
    file_->read(start, head);
    header_ = parse_npy_header(head, place_);
    start_ = start + header_.bytes;
    if (header_.fortran && header_.shape.size() > 1) {
        fail(ErrorKind::kData,
             "{}: in Fortran order and too large to be turned in memory; save np.ascontiguousarray(x)", place_);
    }
    const int64_t needed = header_.bytes + header_.elements() * static_cast<int64_t>(npy_bytes(header_.type));
    if (needed == bytes) return;
    fail(ErrorKind::kData, "{}: {} elements of {} need {} bytes with the header, {} are there", place_,
         header_.shape_text(), npy_name(header_.type), needed, bytes);
}

/// `file`: header and elements.
void NpyArray::hold(std::vector<std::byte> file) {
    header_ = parse_npy_header(file, place_);
    const int64_t needed = header_.bytes + header_.elements() * static_cast<int64_t>(npy_bytes(header_.type));
    if (needed != static_cast<int64_t>(file.size())) {
        fail(ErrorKind::kData, "{}: {} elements of {} need {} bytes with the header, {} are there", place_,
             header_.shape_text(), npy_name(header_.type), needed, file.size());
    }
    file.erase(file.begin(), file.begin() + header_.bytes);
    if (header_.big_endian) swap_elements(file, npy_bytes(header_.type));
    held_ = header_.fortran && header_.shape.size() > 1 ? to_c_order(file, header_) : std::move(file);
    file_.reset();
}

std::span<const std::byte> NpyArray::raw_row(int64_t index, std::vector<std::byte>& scratch) const {
    const size_t bytes = static_cast<size_t>(row_elements()) * npy_bytes(header_.type);
    if (!file_) return std::span(held_).subspan(static_cast<size_t>(index) * bytes, bytes);
    scratch.resize(bytes);
    file_->read(start_ + index * static_cast<int64_t>(bytes), scratch);
    if (header_.big_endian) swap_elements(scratch, npy_bytes(header_.type));
    return scratch;
}

void NpyArray::row(int64_t index, std::span<float> out) const {
    std::vector<std::byte> scratch;
    convert_as(header_.type, raw_row(index, scratch), out);
}

std::vector<double> NpyArray::numbers() const {
    std::vector<double> all(static_cast<size_t>(rows()));
    std::vector<std::byte> scratch;
    for (int64_t i = 0; i < rows(); ++i) {
        convert_as(header_.type, raw_row(i, scratch), std::span(all).subspan(static_cast<size_t>(i), 1));
    }
    return all;
}

}  // namespace lockstep

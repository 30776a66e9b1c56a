#include "data/tfrecord_index.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "data/tf_example.hpp"
#include "io/cache.hpp"
#include "io/files.hpp"
#include "io/picture.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

using Entries = std::vector<TfRecordEntry>;

constexpr std::string_view kMagic = "lockstep tfrecord index 1\n";
constexpr int64_t kMostLabel = (1 << 20) - 1;

TfRecordEntry entry_of(std::span<const std::byte> data, const RecordPlace& place, const TfFeatureNames& names) {
    const TfExample example(data);
    TfRecordEntry entry{place.offset, place.bytes};
    const int64_t label = example.integer_of(names.label);
    if (label < 0 || label > kMostLabel) {
        fail(ErrorKind::kData, "label {} of feature {}: from 0 to {} is expected", label, names.label, kMostLabel);
    }
    entry.label = static_cast<int32_t>(label);
    const std::span<const std::byte> image = example.bytes_of(names.image);
    try {
        const PictureSize size = picture_size(image, names.image);
        entry.height = static_cast<uint16_t>(size.height);
        entry.width = static_cast<uint16_t>(size.width);
    } catch (const Error&) {  // told when the picture is read
    }
    return entry;
}

Entries make_index(const DataFile& file, const TfFeatureNames& names) {
    Entries entries;
    std::vector<std::byte> data;
    for (int64_t offset = 0; offset < file.bytes->size();) {
        const auto record = static_cast<int64_t>(entries.size());
        const RecordPlace place = read_record_header(*file.bytes, file.path, record, offset);
        read_record(*file.bytes, file.path, record, place, data);
        try {
            entries.push_back(entry_of(data, place, names));
        } catch (const Error& error) {
            fail(error.kind(), "{}: {}", record_name(file.path, record, offset), error.what());
        }
        offset = end_of(place);
    }
    if (entries.empty()) fail(ErrorKind::kData, "{}: empty: TFRecords expected, 0 bytes found", file.path);
    return entries;
}

// The magic line, the entries, and a hash of both.
std::vector<std::byte> stored_form(const Entries& entries) {
    const auto body = std::as_bytes(std::span(entries));
    std::vector<std::byte> bytes(kMagic.size() + body.size());
    std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
    std::memcpy(bytes.data() + kMagic.size(), body.data(), body.size());
    const uint64_t hash = hash64(bytes);
    const auto tail = std::as_bytes(std::span(&hash, 1));
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    return bytes;
}

std::optional<Entries> from_stored(std::span<const std::byte> bytes) {
    uint64_t hash = 0;
    if (bytes.size() < kMagic.size() + sizeof(hash)) return {};
    const size_t body = bytes.size() - kMagic.size() - sizeof(hash);
    std::memcpy(&hash, bytes.data() + bytes.size() - sizeof(hash), sizeof(hash));
    const bool whole = std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0 &&
                       body % sizeof(TfRecordEntry) == 0 && hash64(bytes.first(bytes.size() - sizeof(hash))) == hash;
    if (!whole) return {};
    Entries entries(body / sizeof(TfRecordEntry));
    std::memcpy(entries.data(), bytes.data() + kMagic.size(), body);
    return entries;
}

}  // namespace

std::string record_name(const std::string& path, int64_t record, int64_t offset) {
    return fmt::format("{}, record {} at byte {}", path, record, offset);
}

std::vector<TfRecordEntry> index_of(const DataFile& file, bool whole, const TfFeatureNames& names,
                                    const std::string& cache) {
    const std::string facts = fmt::format("{} {} {}\n{}\n{}", kMagic, file.bytes->size(),
                                          hex16(content_hash(*file.bytes, whole)), names.image, names.label);
    Entries made;
    const auto make = [&] { made = make_index(file, names); };
    std::string path;
    try {
        path = cached_copy(cache, cache_name(file.bytes->path(), facts) + ".index", [&](const std::string& to) {
            make();
            write_file_synced(to, stored_form(made));
        });
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::kRuntime) throw;
        warn("the index of {} is not kept, and made at every start: {}", file.path, error.what());
        if (made.empty()) make();
    }
    if (made.empty()) {
        std::optional<Entries> stored = from_stored(read_file(path));
        if (stored) return std::move(*stored);
        warn("{}: a damaged index, made anew at every start; remove it", path);
        make();
    }
    return made;
}

}  // namespace lockstep

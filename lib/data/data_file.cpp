#include "data/data_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/hash.hpp"
#include "io/cache.hpp"
#include "io/source_files.hpp"
#include "io/unpack.hpp"

namespace lockstep {
namespace {

constexpr size_t kMostOpen = 256;  // a process may hold 1,024 files open, and needs some for other things

}  // namespace

std::vector<DataFile> open_data_files(const std::vector<std::string>& paths, const std::string& cache) {
    std::vector<DataFile> files;
    for (const std::string& path : paths) {
        std::string place = path;
        if (is_gzipped(path)) {
            place = cached_copy(cache, cache_name(path, file_fingerprint(path)),
                                [&](const std::string& to) { unpack_file(path, to); });
        }
        files.push_back({path, std::make_unique<RandomFile>(place, paths.size() <= kMostOpen)});
    }
    return files;
}

uint64_t content_hash(const RandomFile& file, bool whole) {
    std::vector<std::byte> piece(static_cast<size_t>(std::min(file.size(), kHashedEnd)));
    uint64_t hash = 0;
    const auto add = [&](int64_t begin, int64_t end) {  // each piece hashed on top of those before
        while (begin < end) {
            const auto part = std::span(piece).first(static_cast<size_t>(std::min(end - begin, kHashedEnd)));
            file.read(begin, part);
            hash = hash64(part, hash);
            begin += static_cast<int64_t>(part.size());
        }
    };
    if (whole || file.size() <= 2 * kHashedEnd) {
        add(0, file.size());
    } else {
        add(0, kHashedEnd);
        add(file.size() - kHashedEnd, file.size());
    }
    return hash;
}

bool hashed_whole(std::span<const DataFile> files) {
    int64_t total = 0;
    for (const DataFile& file : files) total += file.bytes->size();
    return total <= kHashedWhole;
}

std::string files_fingerprint(std::span<const DataFile> files) {
    const bool whole = hashed_whole(files);
    std::string facts;
    int64_t records = 0;
    for (const DataFile& file : files) {
        std::string name = std::filesystem::path(file.path).filename().string();
        if (name.ends_with(".gz")) name.resize(name.size() - 3);
        facts += fmt::format("{} {} {} {}\n", name, file.bytes->size(), file.records,
                             hex16(content_hash(*file.bytes, whole)));
        records += file.records;
    }
    return fmt::format("{} file{}, {} records, {}", files.size(), files.size() == 1 ? "" : "s", records,
                       hex16(hash64(std::as_bytes(std::span(facts)))));
}

}  // namespace lockstep

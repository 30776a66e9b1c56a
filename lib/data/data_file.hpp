// One file of a data set that is read in place: opened anywhere, unpacked first where it is packed with gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/random_file.hpp"

namespace lockstep {

struct DataFile {
    std::string path;                   // as the user named it
    std::unique_ptr<RandomFile> bytes;  // of it unpacked
    int64_t records = 0;
};

/// All of them, in this order; packed ones are unpacked once, into the cache folder (device.cache). Of more than a few
/// hundred files each is opened anew for every read.
std::vector<DataFile> open_data_files(const std::vector<std::string>& paths, const std::string& cache);

/// Of all that is in them, or, where the set is larger than 256 MiB, of the first and the last MiB of each.
uint64_t content_hash(const RandomFile& file, bool whole);
bool hashed_whole(std::span<const DataFile> files);

/// "5 files, 50000 records, HASH": a hash of the files' names without folders and .gz, sizes, record counts and
/// contents (content_hash).
std::string files_fingerprint(std::span<const DataFile> files);

}  // namespace lockstep

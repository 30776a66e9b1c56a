// What lies where in a TFRecord file of pictures: found out once, by reading all of it and checking every checksum, and
// kept in the cache folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/data_file.hpp"
#include "data/tfrecord_file.hpp"

namespace lockstep {

struct TfRecordEntry {
    int64_t offset = 0;
    uint32_t bytes = 0;
    int32_t label = 0;
    uint16_t height = 0;  // of the picture; 0 where its header is damaged
    uint16_t width = 0;

    RecordPlace place() const { return {offset, bytes}; }
};

struct TfFeatureNames {
    std::string image;
    std::string label;
};

/// One entry a record. `cache`: the folder (device.cache), where an index is kept beside the file's time of change and
/// hash (content_hash, as `whole` says: labels stand in the index, so it must be no older than the fingerprint). kData
/// for what read_record refuses, and for records without one of the two features or with a label that is none, naming
/// file, record and offset.
std::vector<TfRecordEntry> index_of(const DataFile& file, bool whole, const TfFeatureNames& names,
                                    const std::string& cache);

/// "PATH, record 3 at byte 1234"
std::string record_name(const std::string& path, int64_t record, int64_t offset);

}  // namespace lockstep

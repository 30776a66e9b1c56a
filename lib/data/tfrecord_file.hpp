// The frame of a TFRecord file: records of a length (8 bytes), its checksum (4), the data, their checksum (4), all
// little-endian; checksums are masked CRC-32C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/random_file.hpp"

namespace lockstep {

/// Where a record lies.
struct RecordPlace {
    int64_t offset = 0;  // of its frame in the file
    uint32_t bytes = 0;  // of its data
};

/// Whether a file that starts so (12 bytes at least) is one: it shows itself by the checksum of its first length.
bool starts_as_tfrecord(std::span<const std::byte> start);

/// The record that starts at `offset`. kData with the file's name, the record's number and the offset, where a checksum
/// is wrong or the file ends before the record does. `bytes` is the file as the user named it.
RecordPlace read_record_header(const RandomFile& file, const std::string& path, int64_t record, int64_t offset);

/// Its data, checked. `data` is resized.
void read_record(const RandomFile& file, const std::string& path, int64_t record, const RecordPlace& place,
                 std::vector<std::byte>& data);

/// Where the next record starts.
int64_t end_of(const RecordPlace& place);

}  // namespace lockstep

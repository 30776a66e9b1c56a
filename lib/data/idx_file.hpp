// One IDX file (the format of MNIST): magic 00 00 TT DD, DD extents as big-endian u32, then the elements, big-endian.
// Packed with gzip or not, which its first bytes tell, never its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class IdxType : uint8_t { kU8 = 0x08, kS8 = 0x09, kI16 = 0x0b, kI32 = 0x0c, kF32 = 0x0d, kF64 = 0x0e };

std::string_view idx_type_name(IdxType type);  // "u8"
size_t idx_type_bytes(IdxType type);

struct IdxArray {
    std::string path;
    IdxType type = IdxType::kU8;
    std::vector<int64_t> extents;  // the first is the number of samples
    std::vector<std::byte> file;   // unpacked; the elements in the byte order of this machine
    size_t start = 0;              // of the elements in it
    uint64_t hash = 0;             // of the unpacked file as it was, big-endian

    const std::byte* elements() const { return file.data() + start; }
    std::string extents_text() const;  // "60000x28x28"
};

/// Reads and checks it. kData, naming file, offset, what was expected and found.
IdxArray read_idx(const std::string& path);

/// Its type and extents alone: no elements, no hash, and no check that the elements are all there.
IdxArray read_idx_header(const std::string& path);

/// The labels in it: whole numbers from 0 to 2^20 - 1, one extent. kData otherwise.
std::vector<int32_t> idx_labels(const IdxArray& array);

}  // namespace lockstep

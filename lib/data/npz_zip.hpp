// One member of a zip archive (which is what an .npz is): where it lies, or its contents unpacked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/random_file.hpp"

namespace lockstep {

struct ZipMember {
    std::string name;
    bool deflated = false;
    uint32_t crc = 0;
    int64_t offset = 0;  // of its data
    int64_t packed_bytes = 0;
    int64_t bytes = 0;
};

/// The members of an archive, large ones (zip64) too. kData, naming file and offset, for what is no archive, is
/// damaged, encrypted or packed otherwise than by deflate.
std::vector<ZipMember> zip_members(const RandomFile& file);

/// The first `bytes` bytes of the contents, or all of fewer. kData where they are damaged.
std::vector<std::byte> member_start(const RandomFile& file, const ZipMember& member, int64_t bytes);

/// Hands on the contents piece by piece. kData where they are damaged.
void unpack_member(const RandomFile& file, const ZipMember& member,
                   const std::function<void(std::span<const std::byte>)>& take);

}  // namespace lockstep

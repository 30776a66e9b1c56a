// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

uint32_t crc32c(std::span<const std::byte> bytes);

/// As TFRecord stores it, so that a checksum of data that hold checksums stays a good one: rotated right by 15 bits,
/// plus a constant.
uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace lockstep

// gzip files for tests.
#pragma once

#include <libdeflate.h>

#include <memory>

#include "io/temp_folder.hpp"

namespace lockstep::test {

inline Bytes gzip(std::span<const std::byte> bytes) {
    const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
        libdeflate_alloc_compressor(6), &libdeflate_free_compressor);
    Bytes packed(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()));
    packed.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), packed.data(), packed.size()));
    return packed;
}

inline Bytes joined(Bytes left, std::span<const std::byte> right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

}  // namespace lockstep::test

// safetensors files, as Hugging Face's and PyTorch's tools read and write them: u64 header length, JSON header, raw
// little-endian data.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct TensorView {
    std::string name;
    std::vector<int64_t> shape;
    std::string dtype = "F32";
    std::span<const std::byte>
        bytes;  // little-endian, C order; of a file read: at any address, so copy before use as float
};

/// The file's bytes: tensors in the given order, metadata in the given order, header padded with spaces to a multiple
/// of 8 bytes.
std::vector<std::byte> safetensors_bytes(const std::vector<TensorView>& tensors,
                                         const std::vector<std::pair<std::string, std::string>>& metadata);

/// A file in memory. Throws kData naming file, offset and what is wrong for every malformed file.
class SafetensorsFile {
  public:
    SafetensorsFile() = default;  // no tensors
    SafetensorsFile(SafetensorsFile&&) = default;
    SafetensorsFile& operator=(SafetensorsFile&&) = default;
    SafetensorsFile(const SafetensorsFile&) = delete;  // the views of a copy would point into the original
    SafetensorsFile& operator=(const SafetensorsFile&) = delete;

    static SafetensorsFile read(const std::string& path);
    static SafetensorsFile parse(std::vector<std::byte> bytes, const std::string& name);
    const std::vector<TensorView>& tensors() const { return tensors_; }  // in file order (by offset)
    const TensorView* find(const std::string& name) const;
    const std::map<std::string, std::string>& metadata() const { return metadata_; }

  private:
    std::vector<std::byte> bytes_;
    std::vector<TensorView> tensors_;
    std::map<std::string, std::string> metadata_;
};

}  // namespace lockstep

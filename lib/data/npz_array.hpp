// One NumPy array of numbers: a .npy file, or a member of an .npz. Held in memory where it is small, else read row by
// row from the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/random_file.hpp"

namespace lockstep {

enum class NpyType { kBool, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF32, kF64 };

size_t npy_bytes(NpyType type);
std::string npy_name(NpyType type);  // "f4"
inline bool is_real(NpyType type) {
    return type == NpyType::kF32 || type == NpyType::kF64;
}

/// What the header of an array says.
struct NpyHeader {
    NpyType type = NpyType::kF32;
    bool big_endian = false;
    bool fortran = false;
    std::vector<int64_t> shape;
    int64_t bytes = 0;  // of the header: the elements follow

    int64_t elements() const;
    std::string shape_text() const;  // "(20, 4)"
};

class NpyArray {
  public:
    /// `name`: of the array in an .npz; `path` may be a .npy itself. Kept in memory up to `memory` bytes; one that is
    /// packed and larger is unpacked once into the folder `cache`. kData naming the file, the array and the offset:
    /// objects (pickles), structures, wrong sizes.
    NpyArray(const std::string& path, const std::string& name, const std::string& cache, int64_t memory);

    const NpyHeader& header() const { return header_; }
    const std::string& place() const { return place_; }  // "data.npz: x"
    int64_t rows() const { return header_.shape.empty() ? 0 : header_.shape[0]; }
    int64_t row_elements() const { return rows() == 0 ? 0 : header_.elements() / rows(); }
    int64_t memory_bytes() const { return static_cast<int64_t>(held_.size()); }

    /// Elements of row `index` in C order as numbers: bool as 0 and 1.
    void row(int64_t index, std::span<float> out) const;
    /// All elements of an array of one number a row.
    std::vector<double> numbers() const;

  private:
    void load(const std::string& path, const std::string& name, const std::string& cache, int64_t memory);
    void open(int64_t start, int64_t bytes);
    void hold(std::vector<std::byte> file);
    std::span<const std::byte> raw_row(int64_t index, std::vector<std::byte>& scratch) const;

    std::string place_;
    NpyHeader header_;
    std::vector<std::byte> held_;  // the elements, in C order and the byte order of this machine
    std::unique_ptr<RandomFile> file_;
    int64_t start_ = 0;  // of the elements in the file
};

/// The arrays of an .npz by their headers alone. `fault`: why one cannot be read (objects, structures), else "".
struct NpzEntry {
    std::string name;
    NpyHeader header;
    std::string fault;
};
std::vector<NpzEntry> arrays_of(const RandomFile& npz);

/// Reads the header that `bytes` start with; `place` and `offset` are for messages.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& place);

}  // namespace lockstep

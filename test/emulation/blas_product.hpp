// The sums of the emulated cuBLAS and cuDNN: a matrix product that adds in another order than Lockstep's kernels do (a
// second opinion), and the number formats of its operands.
//
// As of the real libraries, the order is a function of the shape and of how the operands are aligned, and of nothing
// else: code that lets either depend on how shards are dealt to ranks gets other bits, and its tests see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::emulation {

/// How an operand is stored and rounded: tf32 is stored as fp32 and loses 13 bits of its fraction when it is read.
enum class Number { kFp32, kTf32, kBf16, kFp16 };

inline std::size_t bytes_of(Number number) {
    return number == Number::kFp32 || number == Number::kTf32 ? 4 : 2;
}
/// Element i of memory in this format.
float load(Number number, const void* from, int64_t i);
/// Rounded to nearest even.
void store(Number number, float value, void* to, int64_t i);

/// C [n][m] = B [n][k] A [k][m]. Rows are padded so that the loops have no tails.
class Product {
  public:
    Product(int64_t m, int64_t n, int64_t k);
    float& a(int64_t l, int64_t i) { return a_[static_cast<std::size_t>(l * m_padded_ + i)]; }
    float& b(int64_t j, int64_t l) { return b_[static_cast<std::size_t>(j * k_ + l)]; }
    float c(int64_t j, int64_t i) const { return c_[static_cast<std::size_t>(j * m_padded_ + i)]; }

    /// Products are rounded once (they are exact for bf16, fp16 and tf32), sums are fp32: blocks of `length` terms from
    /// the last to the first, each from the last term to the first, added up in that order.
    void run(int64_t length);

  private:
    int64_t m_, n_, k_, m_padded_, n_padded_;
    std::vector<float> a_, b_, c_;
};

/// A length of blocks for Product::run, of everything that the caller names.
class OrderOf {
  public:
    OrderOf& add(int64_t value);
    /// The largest power of two up to 256 that divides the address.
    OrderOf& add_alignment(const void* pointer);
    int64_t length() const { return 17 + static_cast<int64_t>(state_ % 41); }

  private:
    uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

}  // namespace lockstep::emulation

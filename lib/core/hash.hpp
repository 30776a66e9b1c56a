// Hashes: SHA-256 as the witness that people compare, XXH3 (64 bits) as the cheap one between ranks and for
// fingerprints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lockstep {

class Sha256 {
  public:
    Sha256();
    ~Sha256();
    void update(std::span<const std::byte> bytes);
    std::string hex();  // 64 lower-case digits; ends the computation

  private:
    struct State;
    std::unique_ptr<State> state_;
};
std::string sha256_of_file(const std::string& path);

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);  // XXH3_64bits_withSeed
std::string hex16(uint64_t value);                                     // 16 lower-case digits

}  // namespace lockstep

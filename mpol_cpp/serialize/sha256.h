#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mpol {

/// SHA-256 of a stream of bytes (FIPS 180-4).
class Sha256 {
 public:
  void update(const void* data, std::size_t size);
  /// The digest of everything so far as 64 lower-case hexadecimal digits; ends the stream.
  std::string finish();

 private:
  // First 32 bits of the fractional parts of the square roots of the first eight primes.
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::size_t filled_ = 0;  // bytes waiting in block_
  std::uint64_t bytes_ = 0;
};

/// The digest of one piece of memory.
std::string sha256(const void* data, std::size_t size);

}  // namespace mpol

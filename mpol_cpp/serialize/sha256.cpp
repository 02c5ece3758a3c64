#include <mpol_cpp/serialize/sha256.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace mpol {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void compress(std::array<std::uint32_t, 8>& state, const std::uint8_t* block) {
  std::array<std::uint32_t, 16> w;  // the next sixteen words of the message schedule, each replaced once it was used
  for (std::size_t t = 0; t < w.size(); ++t) w[t] = big_endian(block + 4 * t);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t first = 0; first < round_constants.size(); first += w.size()) {
#pragma GCC unroll 16
    for (std::size_t t = 0; t < w.size(); ++t) {
      const auto sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const auto sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const auto temporary1 = h + sum1 + ((e & f) ^ (~e & g)) + round_constants[first + t] + w[t];
      const auto temporary2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + temporary1;
      d = c, c = b, b = a, a = temporary1 + temporary2;

      const auto w1 = w[(t + 1) % 16], w14 = w[(t + 14) % 16];
      const auto s0 = std::rotr(w1, 7) ^ std::rotr(w1, 18) ^ (w1 >> 3);
      const auto s1 = std::rotr(w14, 17) ^ std::rotr(w14, 19) ^ (w14 >> 10);
      w[t] += s0 + w[(t + 9) % 16] + s1;
    }
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

}  // namespace

void Sha256::update(const void* data, std::size_t size) {
  if (size == 0) return;
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  bytes_ += size;
  if (filled_ > 0) {
    const auto taken = std::min(size, block_.size() - filled_);
    std::memcpy(block_.data() + filled_, bytes, taken);
    filled_ += taken, bytes += taken, size -= taken;
    if (filled_ < block_.size()) return;
    compress(state_, block_.data());
    filled_ = 0;
  }
  for (std::size_t at = 0; at + block_.size() <= size; at += block_.size()) compress(state_, bytes + at);
  filled_ = size % 64;
  std::memcpy(block_.data(), bytes + (size - filled_), filled_);
}

std::string Sha256::finish() {
  const std::uint64_t bits = bytes_ * 8;
  constexpr std::array<std::uint8_t, 64> padding = {0x80};
  update(padding.data(), filled_ < 56 ? 56 - filled_ : 120 - filled_);
  std::array<std::uint8_t, 8> length;
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
  update(length.data(), length.size());

  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const auto word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[word >> shift & 0xf];
  }
  return text;
}

std::string sha256(const void* data, std::size_t size) {
  Sha256 hash;
  hash.update(data, size);
  return hash.finish();
}

}  // namespace mpol

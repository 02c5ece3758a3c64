#include <mpol_cpp/serialize/sha256.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include <mpol_cpp/serialize/sha256_rounds.h>

namespace mpol {
namespace detail {
namespace {

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void compress(std::uint32_t* state, const std::uint8_t* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const auto s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const auto s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] =
      std::array<std::uint32_t, 8>{state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]};
  for (std::size_t t = 0; t < 64; ++t) {
    const auto sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto temporary1 = h + sum1 + ((e & f) ^ (~e & g)) + sha256_constants[t] + w[t];
    const auto temporary2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + temporary1;
    d = c, c = b, b = a, a = temporary1 + temporary2;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

}  // namespace

void sha256_portable(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; ++i) compress(state, data + 64 * i);
}

}  // namespace detail

namespace {

void compress_blocks(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks) {
  static const bool instructions = detail::has_sha_instructions();
  if (instructions) detail::sha256_instructions(state, data, blocks);
  else detail::sha256_portable(state, data, blocks);
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
    compress_blocks(state_.data(), block_.data(), 1);
    filled_ = 0;
  }
  compress_blocks(state_.data(), bytes, size / 64);
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

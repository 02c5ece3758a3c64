#pragma once

// Zip archives by hand: those that no library would write.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mpol::testing {

/// The checksum of zip archives.
inline std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

/// A number written so.
inline std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < count; ++i) number |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return number;
}

/// The lowest byte first; zeros beyond the eighth.
inline std::string little_endian(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t byte = 0; byte < count; ++byte) bytes += static_cast<char>(byte < 8 ? (value >> (8 * byte)) & 0xffU : 0U);
  return bytes;
}

/// A zip archive of one stored file.
inline std::string zip_of(const std::string& name, std::string_view contents) {
  const auto common = little_endian(20, 2) + little_endian(0, 8) + little_endian(crc32(contents), 4) +
                      little_endian(contents.size(), 4) + little_endian(contents.size(), 4) + little_endian(name.size(), 2) +
                      little_endian(0, 2);
  const auto local = "PK\x03\x04" + common + name + std::string(contents);
  const auto central = "PK\x01\x02" + little_endian(20, 2) + common + little_endian(0, 14) + name;
  return local + central + "PK\x05\x06" + little_endian(0, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(central.size(), 4) + little_endian(local.size(), 4) + little_endian(0, 2);
}

}  // namespace mpol::testing

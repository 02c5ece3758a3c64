#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::detail {

/// One tensor of a safetensors file: its bytes are [begin, end) of the payload.
struct SafetensorsEntry {
  std::string name;
  torch::Dtype dtype = torch::kFloat32;  // as stored
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  Metadata metadata;                      // all of it
};

inline constexpr std::string_view payload_digest_key = "payload_sha256";
inline constexpr std::string_view header_digest_key = "header_sha256";
inline constexpr std::string_view complex_key_prefix = "complex:";

/// The header's length and text, padded to a multiple of eight bytes, with both digests in the metadata.
/// @throws ValueError for text that is not UTF-8
std::string format_header(const SafetensorsHeader& header, const std::string& payload_digest);

/// Reads the text behind the length, and checks that the entries fill the payload without hole or overlap.
/// @throws FileError that says what is wrong, without naming the file
SafetensorsHeader parse_header(std::string_view text, std::uint64_t payload_bytes);

/// The digest of a header whose own digest is set to zeros; empty when the text does not hold one.
std::string header_digest(std::string_view length_and_text);

/// @throws ValueError (when writing) for a dtype that the format or this library does not have
std::string_view safetensors_dtype(torch::Dtype dtype);

}  // namespace mpol::detail

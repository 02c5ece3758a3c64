#include <mpol_cpp/serialize/safetensors_header.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/sha256.h>

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

namespace mpol::detail {
namespace {

using nlohmann::json;

struct DtypeName {
  torch::Dtype dtype;
  std::string_view name;
};
constexpr std::array<DtypeName, 6> dtype_names = {{{torch::kFloat64, "F64"},
                                                   {torch::kFloat32, "F32"},
                                                   {torch::kInt64, "I64"},
                                                   {torch::kInt32, "I32"},
                                                   {torch::kUInt8, "U8"},
                                                   {torch::kBool, "BOOL"}}};
constexpr std::size_t digest_digits = 64;

torch::Dtype dtype_from(const std::string& name) {
  const auto found = std::find_if(dtype_names.begin(), dtype_names.end(), [&](const auto& d) { return d.name == name; });
  if (found == dtype_names.end()) {
    throw FileError(fmt::format("dtype {} is not one of F64, F32, I64, I32, U8, BOOL: convert it first", name));
  }
  return found->dtype;
}

/// Where the digits of the header's own digest stand, or npos.
std::size_t digest_position(std::string_view text) {
  const auto key = fmt::format("\"{}\":\"", header_digest_key);
  const auto at = text.find(key);
  if (at == std::string_view::npos || text.size() < at + key.size() + digest_digits) return std::string_view::npos;
  return at + key.size();
}

std::uint64_t unsigned_number(const json& value, std::string_view what) {
  if (!value.is_number_unsigned()) throw FileError(fmt::format("its header has a {} that is not a whole number", what));
  return value.get<std::uint64_t>();
}

/// Bytes of a tensor; refuses shapes whose size does not fit. An extent of 0 makes the size 0, yet the others must multiply
/// without overflow.
std::uint64_t bytes_of(const SafetensorsEntry& entry) {
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(entry.dtype));
  bool empty = false;
  for (const auto extent : entry.shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)) {
      throw FileError(fmt::format("tensor {} has shape {}, too large for any memory", entry.name, entry.shape));
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

SafetensorsEntry parse_entry(const std::string& name, const json& value) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets") || !value["dtype"].is_string() || !value["shape"].is_array() ||
      !value["data_offsets"].is_array() || value["data_offsets"].size() != 2) {
    throw FileError(fmt::format("its entry for tensor {} is not {{dtype, shape, data_offsets}}", name));
  }
  SafetensorsEntry entry{name, dtype_from(value["dtype"].get<std::string>()), {}, 0, 0};
  for (const auto& item : value["shape"]) {
    const auto extent = unsigned_number(item, "shape");
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw FileError(fmt::format("tensor {} has an extent of {}, too large for any memory", name, extent));
    }
    entry.shape.push_back(static_cast<std::int64_t>(extent));
  }
  entry.begin = unsigned_number(value["data_offsets"][0], "data offset");
  entry.end = unsigned_number(value["data_offsets"][1], "data offset");
  if (entry.end < entry.begin || entry.end - entry.begin != bytes_of(entry)) {
    throw FileError(fmt::format("tensor {} of shape {} has data offsets [{}, {}), which is not its size", name, entry.shape,
                                entry.begin, entry.end));
  }
  return entry;
}

Metadata parse_metadata(const json& value) {
  if (!value.is_object()) throw FileError("its __metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) throw FileError(fmt::format("its metadata entry {} is not text", key));
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

json parse_json(std::string_view text) {
  constexpr int deepest = 4;  // tensor, its entry, a list: a tree of brackets would take a hundred bytes for each
  std::set<std::string> names;
  const auto refuse_duplicates = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > deepest) throw FileError("its header is nested deeper than that of a safetensors file");
    if (event == json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second) {
      throw FileError(fmt::format("its header names tensor {} twice", parsed.get<std::string>()));
    }
    return true;
  };
  try {
    auto header = json::parse(text.begin(), text.end(), refuse_duplicates);
    if (!header.is_object()) throw FileError("its header is not a JSON object");
    return header;
  } catch (const json::exception&) {
    throw FileError("its header is not JSON: it is damaged or not a safetensors file");
  }
}

/// The order of the bytes, without hole or overlap.
void check_layout(std::vector<SafetensorsEntry>& entries, std::uint64_t payload_bytes) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  std::uint64_t position = 0;
  for (const auto& entry : entries) {
    if (entry.begin != position) {
      throw FileError(fmt::format("tensor {} starts at byte {} where {} was expected: its tensors overlap or leave a hole",
                                  entry.name, entry.begin, position));
    }
    position = entry.end;
  }
  if (position != payload_bytes) {
    throw FileError(
        fmt::format("its tensors need {} bytes but {} are there: it is truncated or damaged", position, payload_bytes));
  }
}

}  // namespace

std::string_view safetensors_dtype(torch::Dtype dtype) {
  const auto found = std::find_if(dtype_names.begin(), dtype_names.end(), [&](const auto& d) { return d.dtype == dtype; });
  if (found == dtype_names.end()) {
    throw ValueError(
        fmt::format("a tensor of dtype {} cannot be stored: use float64, float32, complex, int64, int32, uint8 or bool",
                    c10::toString(dtype)));
  }
  return found->name;
}

std::string header_digest(std::string_view length_and_text) {
  const auto position = digest_position(length_and_text);
  if (position == std::string_view::npos) return {};
  Sha256 hash;
  const std::string zeros(digest_digits, '0');
  hash.update(length_and_text.data(), position);
  hash.update(zeros.data(), zeros.size());
  const auto rest = length_and_text.substr(position + digest_digits);
  hash.update(rest.data(), rest.size());
  return hash.finish();
}

std::string format_header(const SafetensorsHeader& header, const std::string& payload_digest) {
  nlohmann::ordered_json root;
  auto& metadata = root["__metadata__"] = nlohmann::ordered_json::object();
  for (const auto& [key, text] : header.metadata) metadata[key] = text;
  metadata[std::string(payload_digest_key)] = payload_digest;
  metadata[std::string(header_digest_key)] = std::string(digest_digits, '0');
  for (const auto& entry : header.entries) {
    root[entry.name] = {
        {"dtype", safetensors_dtype(entry.dtype)}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const json::exception& error) {
    throw ValueError(fmt::format("names and metadata of a safetensors file must be UTF-8 text: {}", error.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const std::uint64_t length = text.size();
  if (length > safetensors_header_limit) {
    throw ValueError(fmt::format("the header of a safetensors file would have {} bytes; the format allows {}", length,
                                 safetensors_header_limit));
  }
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += text;
  bytes.replace(digest_position(bytes), digest_digits, header_digest(bytes));
  return bytes;
}

SafetensorsHeader parse_header(std::string_view text, std::uint64_t payload_bytes) {
  SafetensorsHeader header;
  const auto root = parse_json(text);
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") header.metadata = parse_metadata(value);
    else header.entries.push_back(parse_entry(name, value));
  }
  check_layout(header.entries, payload_bytes);
  return header;
}

}  // namespace mpol::detail

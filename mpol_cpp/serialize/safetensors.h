#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include <torch/types.h>

#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol {

using torch::Tensor;

using NamedTensors = std::map<std::string, Tensor>;   ///< tensors of a state by their names
using Metadata = std::map<std::string, std::string>;  ///< text by its key

/// What a safetensors file holds.
struct SafetensorsFile {
  NamedTensors tensors;  ///< on the device that was asked for
  Metadata metadata;     ///< without the entries that describe the file itself (below)
};

/// Writes tensors and text in the safetensors format, atomically and from host memory, one tensor at a time.
///
/// The format has no complex numbers: a complex tensor is stored as real pairs (…, 2), and the metadata entry
/// `complex:NAME` says so. `payload_sha256` in the metadata is the SHA-256 of everything behind the header, and
/// `header_sha256` that of the header with its own 64 digits replaced by zeros, so that a flipped bit anywhere is seen.
/// @param tensors  float32, float64, complex64, complex128, int64, int32, uint8 or bool; any device, shape and strides
/// @throws ValueError for another dtype, an undefined tensor, or text that is not UTF-8; FileError when it cannot write
/// Source: the format's description at https://huggingface.co/docs/safetensors
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata = {});

/// The same into a file that the caller commits.
void write_safetensors(AtomicFile& file, const NamedTensors& tensors, const Metadata& metadata = {});

/// Reads such a file, or one from another program (which then has no digests to be checked).
/// @throws FileError when the file is missing, truncated, damaged, not of this format, or holds another dtype
SafetensorsFile read_safetensors(const std::filesystem::path& path, torch::Device device = torch::kCPU);

/// The text in the header of such a file alone; its tensors are neither read nor checked.
/// @throws FileError as read_safetensors, for what the header shows
Metadata read_safetensors_metadata(const std::filesystem::path& path);

/// The format's own limit on the length of a header.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;  // bytes

}  // namespace mpol

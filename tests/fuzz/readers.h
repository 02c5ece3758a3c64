#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace mpol::testing {

/// One reader of files as fuzzing sees it.
struct FuzzedReader {
  std::string name;
  /// Reads the bytes as a file: 0 when it was read, 1 when it was refused by an mpol::Error. Anything else escapes.
  int (*read)(const std::uint8_t* bytes, std::size_t size);
  /// Small valid files.
  std::vector<std::string> (*corpus)();
  /// Makes sums, lengths and paddings of damaged bytes right again, so that the damage gets past them; may be null.
  std::string (*repair)(std::string bytes);
};

int fuzz_npz(const std::uint8_t* bytes, std::size_t size);
int fuzz_npy(const std::uint8_t* bytes, std::size_t size);
int fuzz_visibilities(const std::uint8_t* bytes, std::size_t size);
int fuzz_fits(const std::uint8_t* bytes, std::size_t size);
int fuzz_uvfits(const std::uint8_t* bytes, std::size_t size);
int fuzz_safetensors(const std::uint8_t* bytes, std::size_t size);
int fuzz_checkpoint(const std::uint8_t* bytes, std::size_t size);
int fuzz_diagnostics(const std::uint8_t* bytes, std::size_t size);
int fuzz_toml(const std::uint8_t* bytes, std::size_t size);
int fuzz_csv(const std::uint8_t* bytes, std::size_t size);
int fuzz_antennas(const std::uint8_t* bytes, std::size_t size);

std::vector<std::string> npz_corpus();
std::vector<std::string> npy_corpus();
std::vector<std::string> visibilities_corpus();
std::vector<std::string> fits_corpus();
std::vector<std::string> uvfits_corpus();
std::vector<std::string> safetensors_corpus();
std::vector<std::string> checkpoint_corpus();
std::vector<std::string> diagnostics_corpus();
std::vector<std::string> toml_corpus();
std::vector<std::string> csv_corpus();
std::vector<std::string> antennas_corpus();

/// Checksums of the stored members of a zip archive.
std::string repair_zip(std::string bytes);
/// The first card and the padding of a FITS file.
std::string repair_fits(std::string bytes);
/// The same tensors without digests: as another program would write them.
std::string without_digests(std::string safetensors);
/// The length of a safetensors header.
std::string repair_safetensors(std::string bytes);

const std::vector<FuzzedReader>& fuzzed_readers();

}  // namespace mpol::testing

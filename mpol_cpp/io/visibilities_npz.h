#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

/// What is known beside the file, and which part of it is wanted.
struct ReadOptions {
  std::optional<UvUnit> uv_unit;       ///< instead of the file's `uv_unit`
  std::vector<double> frequencies;     ///< Hz, instead of the file's: one, or one per channel of the file or per selected one
  std::vector<std::int64_t> channels;  ///< 0-based, in this order; empty: all
  bool conjugate = false;              ///< take conj(data): of arrays written with the other sign, as a measurement set has
  /// The samples [first, second) of each channel; nothing: all. Checksums, which are of whole arrays, are then not verified.
  std::optional<std::pair<std::int64_t, std::int64_t>> samples = {};
  /// Ignored: of stored arrays nothing is read of the channels that are not wanted, to which their checksums belong as well.
  Checksums checksums = Checksums::compared;
};

/// Reads visibilities from a .npz file, or from a folder of .npy files with the names of its arrays (uu.npy, vv.npy, …).
///
/// Keys `uu`, `vv`, `weight` and `data` (or `data_re` and `data_im`). `data` is (nvis) or (nchan, nvis); `uu`, `vv` and
/// `weight` have its shape, or (nvis) and then count for every channel. Optional: `frequency` (scalar or (nchan), Hz),
/// `uv_unit` (`lambda`, `klambda` or `m`; lambda without it), and what write_npz adds of the observation.
/// Metres need frequencies; klambda is converted to wavelengths. Arrays keep the file's dtype (integers become float64),
/// are read in blocks, and of channels only the selected ones are held.
/// @throws FileError, DataError, ShapeError, ValueError (a channel that is not there, or twice); messages name the file and the
/// key
/// @param room  where the samples are kept: on disk, if that is wanted
Visibilities read_npz(const std::filesystem::path& path, const ReadOptions& options = {}, const ArrayRoom& room = {});

/// The unit in which read_npz takes u and v of this file: the option, else the file's key, else lambda.
UvUnit uv_unit_of(const std::filesystem::path& path, const ReadOptions& options = {});

/// Writes visibilities so that read_npz gives them back: u, v in lambda, or in metres with their frequencies; the
/// observation as far as it is known (`right_ascension` and `declination` in radian, `object`, `telescope`, `date`,
/// `rest_frequency` in Hz, `spectral_reference`; and `stokes`, as "Q", of data of anything but Stokes I). Atomic.
/// @throws FileError
/// @param more  further arrays by key, which read_npz leaves alone
/// @throws DataError of visibilities whose phases are turned (with_center)
void write_npz(const std::filesystem::path& path, const Visibilities& visibilities,
               Compression compression = Compression::deflated, const std::map<std::string, Tensor>& more = {});

}  // namespace mpol::io

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/images/image_axes.h>
#include <mpol_cpp/images/reproject.h>
#include <mpol_cpp/io/cfitsio/fits_handle.h>

namespace mpol::io {

/// Keywords of the current header of an open file.
class HeaderReader {
 public:
  explicit HeaderReader(FitsHandle& file) : file_(file) {}

  std::optional<double> number(const std::string& key);  ///< nothing when missing or not finite
  std::string text(const std::string& key);              ///< "" when missing
  std::vector<std::string> history();                    ///< the HISTORY lines

 private:
  FitsHandle& file_;
};

/// One axis of the image as its header describes it.
struct FitsAxis {
  std::int64_t size = 1;
  std::string type, unit;
  double reference_pixel = 0;  // 1-based
  double reference_value = 0;
  std::optional<double> step;
};

/// The number of an axis in the files that are written, from 1.
constexpr int axis_number(ImageAxis axis) { return static_cast<int>(axis) + 1; }

bool is_stokes_axis(const FitsAxis& axis);  ///< whether an axis counts parts of polarised light
bool is_sample_axis(const FitsAxis& axis);  ///< whether an axis counts fits of simulated data

/// The most axes that an image may have.
inline constexpr int most_axes = 8;

/// The axes of the current image. @throws FileError, DataError (too many)
std::vector<FitsAxis> read_axes(FitsHandle& file, const std::filesystem::path& path);

/// Cell size in arcsec of the first two axes. @throws DataError when they are swapped, rotated, not square, or without
/// pixel size
double cell_size_of(FitsHandle& file, const std::vector<FitsAxis>& axes, const std::filesystem::path& path);

/// Where the pixels of the first two axes lie on the sky, as CD says it, or CDELT with PC, or CDELT with CROTA2.
/// @throws DataError when the axes are swapped, or a pixel has no size or no area
PixelLattice lattice_of(FitsHandle& file, const std::vector<FitsAxis>& axes, const std::filesystem::path& path);

/// Whether pixels are square and their rows run East or West, their columns North or South.
bool is_square_and_upright(const PixelLattice& lattice);

/// The axis that counts the planes of a cube, channels or samples (its place in `axes`), or none. @throws DataError when several
/// axes after the first two have more than one value, or there are several Stokes planes
std::optional<std::size_t> plane_axis(const std::vector<FitsAxis>& axes, const std::filesystem::path& path);

/// Degrees of one unit of angle, "" meaning degrees. @throws DataError for unknown ones
double degrees_per(const std::string& unit, const std::filesystem::path& path);

}  // namespace mpol::io

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/reproject.h>
#include <mpol_cpp/io/fits.h>

namespace mpol::io {

/// Which pixels an image may have.
enum class FitsPixels {
  square,  ///< as read_fits() takes them
  any,     ///< as read_any_fits() does: oblong, turned or sheared ones, too
};

/// An image of a FITS file that is read some channels at a time: of a cube larger than memory only what is asked for is held. A
/// file of gzip is unpacked into memory whole.
class FitsCube {
 public:
  /// Opens the file and reads its header; what is taken and refused, and its warnings, are those of read_fits(), or of
  /// read_any_fits() for any pixels.
  /// @throws as these do
  explicit FitsCube(const std::filesystem::path& path, FitsPixels pixels = FitsPixels::square);
  ~FitsCube();
  FitsCube(FitsCube&&) noexcept;
  FitsCube& operator=(FitsCube&&) noexcept;

  /// All that read_fits() gives but the pixels: `cube` is undefined.
  const FitsImage& header() const;
  /// Where the pixels lie, unless they are square with North up (or down); as in AnyFitsImage.
  const std::optional<PixelLattice>& lattice() const;
  std::int64_t nchan() const;    ///< channels
  std::int64_t rows() const;     ///< pixels of a column of the image
  std::int64_t columns() const;  ///< pixels of a row of it

  /// The channels [begin, end), (end - begin, rows, columns) float64 in sky orientation (with a lattice as they lie in the file),
  /// in the header's unit. One thread at a time reads.
  /// @throws ValueError for channels that are not there; FileError when they cannot be read, or take more than there is memory
  Tensor read(std::int64_t begin, std::int64_t end);

 private:
  struct File;
  std::unique_ptr<File> file_;
};

/// A cube that is written as a FITS image some channels at a time, so that one larger than memory can be: header, tables and
/// pixels as write_fits() has them. The file appears under its name with finish(), complete, or not at all.
class FitsCubeWriter {
 public:
  /// @throws ShapeError for an option of another number of channels; ValueError for no channels, and as write_fits(); FileError
  ///         when it cannot be written
  FitsCubeWriter(const std::filesystem::path& path, const GridCoords& coords, std::int64_t nchan,
                 const FitsOptions& options = {});
  ~FitsCubeWriter();
  FitsCubeWriter(const FitsCubeWriter&) = delete;
  FitsCubeWriter& operator=(const FitsCubeWriter&) = delete;

  /// Writes the next channels. @param sky_cube  (n, npix, npix), sky orientation, real, any dtype and device
  /// @throws ShapeError for another shape, or more channels than there are; FileError
  void add(const Tensor& sky_cube);
  /// Ends the file. @throws ShapeError unless every channel was written; FileError
  void finish();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace mpol::io

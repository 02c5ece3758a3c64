#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/beam.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

using torch::Tensor;

/// The unit of an image in a FITS file (BUNIT).
enum class FitsUnit {
  jy_per_pixel,    ///< Jy/pixel: the given cube is in Jy/arcsec^2 and is multiplied by the cell's area
  jy_per_arcsec2,  ///< Jy/arcsec2: the given cube as it is
  jy_per_beam,     ///< Jy/beam: the given cube, in Jy/beam, as it is
  none,            ///< a number, such as the power of a primary beam: the given cube as it is
};

/// What the planes of a cube in a FITS file are.
enum class FitsPlanes {
  channels,  ///< axis 3, FREQ or CHANNEL
  samples,  ///< fits of one channel to simulated data: axis 5, SAMPLE 0, 1, …, behind a channel and a STOKES axis of length one
};

/// What samples do not show of the errors of the image that they are of, as far as it is known (ErrorMaps).
struct SampleErrors {
  std::optional<double> factor;  ///< ERRFACT: by how much errors are larger than samples differ from the image
  std::optional<double> growth;  ///< ERRGROW: what data still hold of the image's shape, over the image
  std::optional<double> width;   ///< ERRWIDTH: of the Gaussian that the image is smoothed by for that, arcsec
};

/// What the header says beside the grid; all of it optional.
struct FitsOptions {
  /// What the planes of the cube are.
  TORCH_ARG(FitsPlanes, planes) = FitsPlanes::channels;
  /// Unit of the cube that is given, and of the file.
  TORCH_ARG(FitsUnit, unit) = FitsUnit::jy_per_pixel;
  /// (nchan) Hz, of samples (1). Without it the third axis is CHANNEL 0, 1, …
  TORCH_ARG(Tensor, frequencies) = {};
  /// Phase centre (CRVAL), object, telescope, date, rest frequency, polarisation (STOKES). CRPIX is off the image's middle where
  /// the image has a center of its own (Observation::center). CRVAL of a coordinate that is unknown is 0, which HISTORY says.
  TORCH_ARG(Observation, observation) = {};
  /// None, one for all channels, or one per channel. Only for images that were convolved with it.
  TORCH_ARG(std::vector<Beam>, beams) = {};
  /// HISTORY lines: the command line, the configuration. Long ones are wrapped, non-ASCII characters replaced by '?'.
  TORCH_ARG(std::vector<std::string>, history) = {};
  /// What is known of the errors, of samples alone.
  TORCH_ARG(SampleErrors, sample_errors) = {};
};

/// Writes a cube in sky orientation as a FITS image: float32, axes RA, DEC, FREQ (or CHANNEL), STOKES; of samples SAMPLE, too.
///
/// Uneven frequencies: the third axis is CHANNEL, the frequencies lie in a binary table FREQUENCIES, and a warning is
/// logged. Beams that differ between channels lie in a binary table BEAMS (as CASA writes it). The file appears complete
/// or not at all; the same input gives the same bytes. They are put together in memory: 4 bytes a pixel and channel.
/// @param sky_cube  (npix, npix) or (nchan, npix, npix), sky orientation, Jy/arcsec^2 (Jy/beam with jy_per_beam), real,
///                  any dtype and device
/// @throws ShapeError when the cube is not on the grid or an option has another number of channels; ValueError for beams
///         that are not finite and > 0; FileError when the file cannot be written
void write_fits(const std::filesystem::path& path, const Tensor& sky_cube, const GridCoords& coords,
                const FitsOptions& options = {});

/// The same into a file that the caller commits.
void write_fits(AtomicFile& target, const Tensor& sky_cube, const GridCoords& coords, const FitsOptions& options = {});

/// Writes each channel to a file of its own: image.fits becomes image_0000.fits, image_0001.fits, …
/// @return the paths written. @throws as write_fits, and ValueError for samples
std::vector<std::filesystem::path> write_fits_split_channels(const std::filesystem::path& path, const Tensor& sky_cube,
                                                             const GridCoords& coords, const FitsOptions& options = {});

/// An image read from a FITS file.
struct FitsImage {
  Tensor cube;           ///< (nchan, rows, columns) float64, sky orientation (row 0 South, column 0 East), in `unit`
  double cell_size = 0;  ///< arcsec
  std::string unit;      ///< BUNIT as written, "" when missing
  Tensor frequencies;    ///< (nchan) float64 Hz, or undefined, as of samples
  FitsPlanes planes = FitsPlanes::channels;  ///< of the cube; samples where an axis SAMPLE counts them
  /// Pixel, 0-based in the cube, of the reference position (the phase centre): npix/2 and npix/2 - 1 in our own files.
  double reference_row = 0;
  double reference_column = 0;  ///< the column of it
  std::vector<Beam> beams;      ///< none, one, or one per channel
  /// Reference position, object, telescope, date, rest frequency as far as known; a position that HISTORY calls unknown, and
  /// 0, 0, which stands for that, are left out. The polarisation is that of the axis STOKES, without one Stokes I.
  Observation observation;
  std::vector<std::string> history;  ///< the lines of HISTORY
  SampleErrors sample_errors;        ///< of samples
};

/// Reads the first image of a FITS file: 2 axes or more, RA and DEC (or L and M offsets) first, then any of frequency, channel,
/// sample and Stokes, of which one may be longer than one, but not Stokes; any BITPIX, scaled and compressed images. Flips to sky
/// orientation when an axis runs the other way. Pixels that do not match their checksum are read with a warning.
/// @throws FileError when it is missing, no FITS file, damaged or holds no image; DataError when its axes are rotated,
///         its pixels not square, or it has several Stokes planes (which are named)
FitsImage read_fits(const std::filesystem::path& path);

}  // namespace mpol::io

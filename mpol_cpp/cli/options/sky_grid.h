#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_cube.h>

namespace mpol::cli {

/// What HISTORY says of an image that mpol pbcor has made.
inline constexpr const char* divided_by_beam = "divided by the primary beam";

/// An image from a FITS file on a grid of this library.
struct SkyImage {
  Tensor cube;             ///< (nchan, npix, npix) float64, sky orientation, in `unit`
  GridCoords coords;       ///< even and square; pixels that the file lacks are 0
  std::string unit;        ///< of the pixels
  io::FitsOptions header;  ///< frequencies, observation and beams as far as they are known, to write the same with
  std::string pixels;      ///< of the file, in words, where they were not square with North up and the image is reprojected
  bool is_divided_by_beam = false;  ///< HISTORY says that the primary beam is taken out

  const SkyOffset& center() const { return header.observation().center; }  ///< of the grid from the phase centre
};

/// The unit that a verb wants an image in.
enum class SkyUnit {
  brightness,  ///< Jy/arcsec^2, converted
  as_written,  ///< as the file has it
  mask,        ///< 0 where the file has 0 or a blank (NaN), else 1
};

/// Where the grid of an image lies that was read.
enum class SkyFrame {
  phase_center,  ///< about the phase centre: offsets of its pixels are those from the phase centre
  own,           ///< about the image's own middle, wherever that is (center()), unless the phase centre does as well
};

/// Cells that an image is brought to whose own are oblong or turned.
struct SkyCells {
  double size = 0;   ///< arcsec
  SkyOffset origin;  ///< of the middle of one of them from the phase centre
};

/// Reads an image of any shape and puts it on the smallest even square grid that holds it. One whose pixels are oblong or turned
/// is reprojected by exact area to square ones with North up, which is said.
/// @param option  that named the file, for messages
/// @param cells   such an image is brought to; none: as wide as the narrower side of its pixels
/// Blank pixels (NaN) are 0, which is warned of.
/// @throws mpol::Error when it cannot be read, or the unit cannot be converted; about the phase centre
///         also where that lies between pixels or far outside
SkyImage read_sky_image(const std::filesystem::path& path, const std::string& option, SkyUnit unit = SkyUnit::brightness,
                        SkyFrame frame = SkyFrame::phase_center, const std::optional<SkyCells>& cells = {});

/// How such an image was reprojected, for HISTORY; empty where its pixels are square with North up.
std::string reprojection_words(const SkyImage& image);

/// Adds these words to the lines of HISTORY, where there are any.
void add_reprojection(std::vector<std::string>& history, const SkyImage& image);

/// An image that is read some channels at a time, on the grid and as read_sky_image() has it: of a cube larger than memory only
/// what is asked for is held.
class SkyCube {
 public:
  /// @param channels  of the file that are read, in this order; none: all. @param option  that named the file, for messages
  /// @param unit  not SkyUnit::mask
  /// @throws UsageError for channels that are not there; else as read_sky_image(), but for pixels
  SkyCube(const std::filesystem::path& path, const std::string& option, const std::vector<std::int64_t>& channels,
          SkyUnit unit = SkyUnit::as_written, SkyFrame frame = SkyFrame::phase_center);

  /// All but the pixels: `cube` is undefined; frequencies and beams of the channels that are read.
  const SkyImage& image() const { return image_; }
  std::int64_t nchan() const { return static_cast<std::int64_t>(channels_.size()); }  ///< channels that are read
  double bytes_of_channel() const;                                                    ///< that reading one takes at its peak

  /// The channels [begin, end) of those that are read, (end - begin, npix, npix) float64; blank pixels (NaN) are 0.
  /// @throws mpol::Error when they cannot be read
  Tensor read(std::int64_t begin, std::int64_t end);

 private:
  io::FitsCube file_;
  std::filesystem::path path_;
  std::string option_;
  std::int64_t row_ = 0, column_ = 0;  // where the file's pixels lie on the grid
  std::vector<std::int64_t> channels_;
  bool said_blank_ = false;  // that there are blank pixels
  Tensor area_;              // of brightness: what pixels are divided by, (1) or one of each channel of the file
  SkyImage image_;
};

/// The channels of an image that --channels names, in its order, with their frequencies and beams; all of an empty list.
/// @throws UsageError for one that is not there
SkyImage with_channels(SkyImage image, const std::vector<std::int64_t>& channels);

/// Warns where an image is taken as if it had the phase centre of others although both are known and more than a tenth of a
/// pixel apart.
/// @param option  that named the file
/// @param others  in words, whose observation it is: "the data"
void warn_of_other_center(const std::string& option, const std::filesystem::path& path, const SkyImage& image,
                          const Observation& observation, const std::string& others);

/// Warns where an image is of another polarisation than what it is compared with.
/// @param option, others  as of warn_of_other_center
void warn_of_other_stokes(const std::string& option, const std::filesystem::path& path, const SkyImage& image,
                          const Observation& observation, const std::string& others);

/// Warns of different phase centres and polarisations.
/// @param name_b  of the second image, for messages  @throws DataError unless both have the same channels, pixels and cells
void check_same_grid(const SkyImage& a, const SkyImage& b, const std::string& name_b);

}  // namespace mpol::cli

#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mpol {

/// Where the antennas of an interferometer stand.
struct ArrayConfiguration {
  std::string name;  ///< of the telescope
  /// East, North, Up of each antenna in metres, from any common origin (only differences matter).
  std::vector<std::array<double, 3>> positions;
  double latitude = 0;   ///< of the array, radian
  double diameter = 12;  ///< of a dish, metres

  std::int64_t antennas() const { return static_cast<std::int64_t>(positions.size()); }  ///< their number
  std::int64_t baselines() const { return antennas() * (antennas() - 1) / 2; }           ///< pairs of antennas
  /// Longest distance between two antennas, metres.
  double longest_baseline() const;
};

/// Latitude of ALMA, radian.
inline constexpr double alma_latitude = -0.401822;

/// An array like ALMA's: 12 m dishes on a centrally condensed spiral whose arms advance by the golden angle, so that
/// baselines of all lengths and directions occur; at ALMA's latitude. Not the positions of ALMA's real pads.
/// @param longest_baseline  metres, > 0
/// @throws ValueError for fewer than two antennas or a length that is not positive
ArrayConfiguration alma_like_array(double longest_baseline = 1600, std::int64_t antennas = 43);

/// Reads antenna positions from a text file: one antenna per line, `x y z [diameter [name]]` in metres, separated by
/// blanks; `#` starts a comment. Two comments have a meaning (the files of CASA's simulator carry them too):
///   `# coordsys=LOC`  x, y, z are East, North, Up (the default; needs `latitude`, else ALMA's is taken)
///   `# coordsys=XYZ`  x, y, z are geocentric (ITRF): turned into East, North, Up at the array's mean position, whose
///                     geodetic latitude (WGS84) is then the array's
///   `# latitude=-23.02`  degrees
///   `# observatory=NAME`
/// The diameter of the first antenna that states one is taken for all.
/// @throws FileError with the line number for anything else
ArrayConfiguration read_array_configuration(const std::filesystem::path& path);

}  // namespace mpol

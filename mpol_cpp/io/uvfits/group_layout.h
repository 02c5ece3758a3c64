#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpol_cpp/io/cfitsio/fits_handle.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

/// A parameter that each group has: PTYPEn, PSCALn, PZEROn.
struct GroupParameter {
  std::string name;
  double scale = 1, zero = 0;
};

/// An axis of a group's data, by its CTYPE.
struct GroupAxis {
  std::string name;
  std::int64_t size = 1, stride = 1;  ///< values, values from one pixel to the next
  double value = 0, pixel = 1, step = 1;

  double at(std::int64_t index) const { return value + (static_cast<double>(index) + 1 - pixel) * step; }
};

/// Frequencies of the IFs under one FREQSEL: a row of the table AIPS FQ.
struct FrequencySetup {
  std::int64_t id = 1;
  std::vector<double> offsets, widths;  ///< Hz, of each IF: of its reference channel from the axis's, from channel to channel
};

/// A row of the table AIPS SU.
struct GroupSource {
  std::int64_t id = 1;
  std::string name;
  double right_ascension = 0, declination = 0;  ///< radian
};

/// What the headers of a UVFITS file say of its groups.
struct GroupLayout {
  std::int64_t groups = 0;
  std::vector<GroupParameter> parameters;
  std::vector<GroupAxis> axes;  ///< the first, of no pixels, left out
  std::vector<FrequencySetup> setups;
  std::vector<GroupSource> sources;
  Observation observation;
  double equinox = 2000;
  std::string unit;  ///< BUNIT

  /// Values of one group.
  std::int64_t values() const;
  /// The axis, or nothing.
  const GroupAxis* axis(std::string_view name) const;
  /// Indices of the parameters of that name, or of a name that begins so and goes on with a dash.
  std::vector<std::size_t> named(std::string_view name) const;
};

/// Reads all headers and tables that are needed; the primary unit is the current one afterwards.
/// @throws FileError, DataError as open_uvfits
GroupLayout read_group_layout(FitsHandle& file, const std::filesystem::path& path);

}  // namespace mpol::io

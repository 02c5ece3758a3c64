#pragma once

#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// What `mpol filter` looks for: cubes in FITS files, and a disc in Keplerian rotation.
struct TemplateOptions {
  std::string files;  ///< comma-separated
  bool keplerian = false;
  std::optional<double> mass, distance, outer_radius;                             ///< solar masses, pc, arcsec
  std::optional<double> inner_radius;                                             ///< arcsec; nothing: a tenth of the outer one
  double inclination = 0, position_angle = 0, offset_east = 0, offset_north = 0;  ///< degrees and arcsec
  double brightness_index = 0.5, line_width = 0.5;                                ///< km/s
  std::optional<double> line_frequency;                                           ///< Hz; nothing: as the data say
};

/// One cube to look for, its channels in the order of the data's.
struct LineTemplate {
  std::string name;  ///< of its file, or "keplerian"
  Tensor cube;       ///< (nchan, npix, npix) Jy/arcsec^2
  GridCoords coords;
};

void declare(OptionSet& options, TemplateOptions& templates);

/// After parsing: there is something to look for, and paths do not depend on the working directory. @throws UsageError
void settle(TemplateOptions& templates);

/// Rest frequency of the line as the options or the data say, Hz.
std::optional<double> line_frequency(const TemplateOptions& templates, const Visibilities& visibilities);

/// All that the options name, files first. @throws mpol::Error where a cube cannot be read or does not suit the data's channels
std::vector<LineTemplate> line_templates(const TemplateOptions& templates, const DataOptions& data,
                                         const Visibilities& visibilities);

}  // namespace mpol::cli

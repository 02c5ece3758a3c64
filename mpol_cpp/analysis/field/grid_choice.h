#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// A grid for visibilities, with a reason in words for each part of it that was chosen: empty for what was given.
struct GridChoice {
  GridCoords coords;             ///< cell size and pixels
  SkyOffset center = {};         ///< of the image from the visibilities' phase centre, arcsec; in whole cells where it was chosen
  std::string cell_size_reason;  ///< why its cells are so wide
  std::string npix_reason;       ///< why it has so many pixels
  std::string center_reason;     ///< why its middle is not the phase centre; empty also where it is
};

/// Chooses what is not given of a grid for visibilities: cells of a fifth of the finest fringe (suggested_cell_size), and pixels
/// for the field of choose_field(). Where all baselines have length zero, cells of an arcsecond.
/// @param cell_size  arcsec
/// @param npix       pixels along each axis
/// @param center     that the visibilities have already; nothing: to be chosen together with npix
/// @throws ValueError naming a cell size or number of pixels that GridCoords refuses
GridChoice choose_grid(const FieldView& view, std::optional<double> cell_size = {}, std::optional<std::int64_t> npix = {},
                       std::optional<SkyOffset> center = {});
/// The same of visibilities.
GridChoice choose_grid(const Visibilities& visibilities, std::optional<double> cell_size = {},
                       std::optional<std::int64_t> npix = {}, std::optional<SkyOffset> center = {});

/// The whole number of cells nearest to an offset, arcsec: pixels lie where those of an image about the phase centre would.
SkyOffset in_whole_cells(const SkyOffset& offset, double cell_size);

}  // namespace mpol

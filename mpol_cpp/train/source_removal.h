#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/train/usual_image.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Where a source is imaged for being taken out.
struct SourceField {
  double east = 0, north = 0;            ///< its centre, arcsec from the phase centre
  GridCoords coords = GridCoords(1, 2);  ///< its pixels
};

/// The field given, where it holds all flux of a wide dirty image (look_around) and has at most 512 pixels along an axis. Else a
/// field of its own around that flux, with a margin of half its width, that holds at least the scales of 0.6/q_min that the
/// shortest baseline recovers, in pixels of a fifth of the finest fringe or those given where these are larger; npix is between
/// 64 and 4096.
/// @param coords  whose cells hold all baselines
SourceField source_field(const GridCoords& coords, const Visibilities& visibilities);

/// Data less a source that is fitted to them in its field (usual_image, each channel alone), with the field's centre as their
/// phase centre: noise, if the fit describes the source.
/// @throws DivergedError
Visibilities without_source(const Visibilities& visibilities, const SourceField& field, const UsualImageOptions& options = {});

}  // namespace mpol

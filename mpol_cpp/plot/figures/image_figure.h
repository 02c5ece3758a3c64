#pragma once

#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::plot {

/// How an image figure looks; the defaults suit a model image.
struct ImageFigureOptions {
  std::string title;                   ///< of the page; empty: none
  std::string unit = "Jy/arcsec²";     ///< of the values given, beside the colour bar
  std::optional<ColorScale> scale;     ///< unset: suitable_scale(), or, where `lower` is given, sequential
  ColorNorm norm;                      ///< linear, unless told otherwise
  std::optional<double> lower, upper;  ///< ends of the colour scale; unset: from the values shown
  std::optional<double> half_width;    ///< arcsec shown to each side of the image's middle; unset: the whole image
  SkyOffset center;                    ///< of the image's middle from the phase centre, which the axes count from
  std::optional<Beam> beam;            ///< of all channels
  std::vector<Beam> beams;             ///< one per channel instead; empty: `beam`
  std::optional<ScaleBar> scale_bar;   ///< unset: a round length of about a fifth of the width
  std::vector<double> frequencies;     ///< Hz, one per channel: named above each channel of a cube
  std::int64_t max_channels = 12;      ///< of a cube; more are thinned out evenly, first and last kept
  std::vector<std::int64_t> channels;  ///< those to show, from 0; empty: as max_channels says
  /// Channels of the cube where only those to show are given: `channels` then names each, and frequencies and beams are those of
  /// all. Unset: all are given.
  std::optional<std::int64_t> nchan;
};

/// The page of an image, or of the channels of a cube, with axes in arcsec (East left), colour bar, scale bar and beam.
///
/// A cube of up to `max_channels` channels is shown whole, a longer one by evenly spaced channels; each panel says which
/// channel it is, and all share one colour scale.
/// @param sky_image  (npix, npix), (1, npix, npix) or (nchan, npix, npix), sky orientation, any floating dtype, device
/// @throws ShapeError when the image does not fit the grid, or the options its channels; ValueError for a channel that is not
/// there
Page image_page(const Tensor& sky_image, const GridCoords& coords, const ImageFigureOptions& options = {});

/// The channels of a cube that a figure with room for `max_channels` shows: all of them, or evenly spaced ones.
std::vector<std::int64_t> shown_channels(std::int64_t nchan, std::int64_t max_channels);

}  // namespace mpol::plot

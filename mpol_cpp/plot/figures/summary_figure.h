#pragma once

#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/analysis/amplitude_bins.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol::plot {

/// What one page says about a run: dirty image, model, residual; uv coverage, amplitude against baseline, loss.
/// Leave out what there is none of: its panel is then left out too.
struct SummaryFigure {
  /// An empty page. @param grid  of all its images
  explicit SummaryFigure(const GridCoords& grid) : coords(grid) {}

  std::string title;  ///< of the page
  GridCoords coords;  ///< of all images

  Tensor model;              ///< (nchan, npix, npix) or (npix, npix), sky orientation, Jy/arcsec^2
  Tensor dirty;              ///< same shape, Jy/beam
  Tensor residual;           ///< same shape, Jy/beam
  std::optional<Beam> beam;  ///< of the dirty and residual images
  /// Noise of each channel's residual, Jy/beam, in which it is then shown; none: in Jy/beam.
  std::vector<double> noise;

  std::optional<Baselines> baselines;  ///< for the uv coverage; thinned out to what a page can show

  /// Amplitudes against baseline length, of samples or of the occupied uv cells: see `AmplitudeSums`.
  std::vector<double> amplitude_q;      ///< wavelengths
  std::vector<double> amplitude_data;   ///< Jy
  std::vector<double> amplitude_model;  ///< Jy; may be empty

  std::vector<std::string> loss_names;            ///< total, nll, terms…
  std::vector<std::vector<double>> loss_history;  ///< one vector over the epochs per name
  std::vector<double> loss_epochs;                ///< epochs of the values in each of them; empty: 0, 1, …
};

/// The page of a run. Of a cube it shows the middle channel, and says so in the titles.
/// @throws ShapeError when an image does not fit the grid
Page summary_page(const SummaryFigure& summary);

}  // namespace mpol::plot

#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// Values of several quantities over the epochs: one vector per name, epoch 0 first.
using EpochHistory = std::vector<std::vector<double>>;

/// The total and up to five terms of a loss over the epochs; logarithmic when the total is positive throughout.
/// @param epochs  of the values in each vector; empty: 0, 1, …
CurvePanel loss_panel(const std::vector<std::string>& names, const EpochHistory& history, const std::vector<double>& epochs = {});

/// How a fit goes or went. Leave out what there is none of: its panel is then left out too. Of a cube the middle channel
/// is shown.
struct TrainingFigure {
  /// An empty page. @param grid  of all its images
  explicit TrainingFigure(const GridCoords& grid) : coords(grid) {}

  std::string title;  ///< of the page
  GridCoords coords;  ///< of all images

  Tensor image;     ///< (nchan, npix, npix) or (npix, npix), sky orientation, Jy/arcsec^2
  Tensor gradient;  ///< of the loss with respect to the image, same shape
  Tensor change;    ///< of the image since an earlier epoch, same shape, Jy/arcsec^2

  std::vector<std::string> loss_names;  ///< total, nll, terms…
  EpochHistory loss_history;            ///< one vector per name
  std::vector<double> learning_rate;    ///< of the same epochs
  std::vector<double> loss_epochs;      ///< these; empty: 0, 1, …
  EpochHistory flux;                    ///< Jy, one vector per channel
  std::vector<double> flux_epochs;      ///< epochs of the values in each of them; empty: 0, 1, …
};

/// The page of a fit: image, gradient, change; loss, learning rate, flux.
/// @throws ShapeError when an image does not fit the grid; ValueError when
///         there is nothing to draw
Page training_page(const TrainingFigure& training);

}  // namespace mpol::plot

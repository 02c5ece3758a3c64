#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/gridding/beam_shape.h>
#include <mpol_cpp/gridding/scatter.h>
#include <mpol_cpp/gridding/taper.h>
#include <mpol_cpp/gridding/weighting.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Unit of dirty images: flux density per dirty beam, or divided by the beam's area.
enum class ImageUnit { jy_per_beam, jy_per_arcsec2 };

struct DirtyImagerOptions {
  TORCH_ARG(Weighting, weighting) = Weighting::briggs;
  /// Briggs robustness R, -2 (nearly uniform) to 2 (nearly natural).
  TORCH_ARG(double, robust) = 0.5;
  /// Additional weight T(u, v) of every sample; none when empty. `gaussian_taper` makes the usual one.
  TORCH_ARG(Taper, taper) = nullptr;
  TORCH_ARG(ImageUnit, unit) = ImageUnit::jy_per_beam;
  /// Which data channels feed which image channel; empty: image channel c <- data channel c.
  TORCH_ARG(std::optional<ChannelMap>, channel_map) = std::nullopt;
};

/// Dirty images and beams of loose or gridded visibilities, always with the Hermitian partner of every sample:
///
///   image(l, m) = C sum_k T_k D_k w_k V_k exp(2 pi i (u_k l + v_k m)),   C = 1 / sum_k T_k D_k w_k
///
/// with u, v rounded to cell centres; the beam is the image of V = 1 and peaks at 1. D depends on the cell, T on the
/// sample. Only occupied cells are kept, and channels are imaged one by one, each with its own beam, so that memory
/// above the data and the images stays within 64 MiB + 10 % of the data. Results are float64 on the CPU.
/// Source: Briggs, Schwab & Sramek 1999; robustness as in CASA's tclean.
class DirtyImager {
 public:
  /// Grids the visibilities: one pass over the data, two with a taper.
  /// @throws DataError when a baseline lies outside the grid; ValueError for robust outside [-2, 2] or a channel map
  ///         that names channels that are not there
  DirtyImager(const GridCoords& coords, const Visibilities& visibilities, DirtyImagerOptions options = {});

  /// Takes data that are gridded already (without Hermitian pairs); a taper is evaluated at the cell centres.
  /// @throws ValueError when a channel map is given
  explicit DirtyImager(const GriddedDataset& dataset, DirtyImagerOptions options = {});

  const GridCoords& coords() const { return coords_; }
  std::int64_t nchan() const { return nchan_; }
  /// Occupied cells, (ncells) int64, flat index into the packed (nchan, npix, npix) cube, increasing: the cells of
  /// `DataAverager(coords, visibilities).to_dataset()`.
  const Tensor& cells() const { return cells_; }
  /// Scatter of loose visibilities in their cells (see DataAverager); none of gridded or tapered ones.
  const std::optional<Scatter>& scatter() const { return scatter_; }

  /// Dirty image of the data, (nchan, npix, npix) sky, in the unit of the options.
  Tensor image() const;
  /// Dirty image of other visibilities with the weights of these data; linear, so that
  /// `imager.image() - imager.image_of(dataset->at_cells(model))` is the residual image.
  /// @param cell_visibilities  (ncells) complex, Jy, in the order of `cells()`
  /// @throws ShapeError otherwise
  Tensor image_of(const Tensor& cell_visibilities) const;
  /// Dirty beam, (nchan, npix, npix) sky, peak 1 at column npix/2 - 1, row npix/2.
  Tensor beam() const;

  /// C of each channel, (nchan), Jy^2 (natural, Briggs) or 1 (uniform).
  Tensor normalisation() const;
  /// Standard deviation of the thermal noise in the image that the weights promise, (nchan), in the unit of the
  /// options: sqrt(sum T^2 D^2 w) / sum T D w.
  Tensor noise() const;
  /// Area of the dirty beam within its first null, (nchan), arcsec^2 (see BeamShape).
  Tensor beam_area() const;
  /// Largest |beam| outside the first null, (nchan).
  Tensor peak_sidelobe() const;
  /// Gaussian fitted to the main lobe of each channel; none where the lobe is no ellipse within the image.
  std::vector<std::optional<GaussianBeam>> fitted_beam() const;

 private:
  struct Cache;

  DirtyImager(const GridCoords& coords, std::int64_t nchan, DirtyImagerOptions options);
  void weigh(const Tensor& cell_weights, const Tensor& tapered, const Tensor& tapered_twice);
  /// Images of the given visibilities, of V = 1 (the beam, without unit) where undefined.
  Tensor make_images(const Tensor& cell_visibilities) const;
  void make_image(std::int64_t channel, const Tensor& cell_visibilities, Tensor storage) const;
  const std::vector<BeamShape>& shapes() const;

  GridCoords coords_;
  std::int64_t nchan_;
  DirtyImagerOptions options_;
  std::vector<std::int64_t> first_cell_;  // (nchan + 1): where the cells of a channel begin
  Tensor cells_;                          // (ncells) int64
  Tensor visibilities_;                   // (ncells) complex128, averages with weights T w
  Tensor imaging_weights_;                // (ncells) float64, D sum T w
  Tensor normalisation_, noise_;          // (nchan) float64; the noise in Jy/beam
  std::optional<Scatter> scatter_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace mpol

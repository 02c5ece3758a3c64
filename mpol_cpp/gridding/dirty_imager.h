#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/gridding/beam_shape.h>
#include <mpol_cpp/gridding/cells/scatter.h>
#include <mpol_cpp/gridding/taper.h>
#include <mpol_cpp/gridding/weighting.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Unit of dirty images: flux density per dirty beam, or divided by the beam's area.
enum class ImageUnit {
  jy_per_beam,    ///< Jy per dirty beam, the usual one
  jy_per_arcsec2  ///< the same over the beam's area: that of models
};

/// What dirty images are made of.
enum class Imaging {
  exact,  ///< the samples at their own u, v, by a nonuniform transform: nothing is lost anywhere in the field
  cells,  ///< averages of uv cells at their centres, as MPoL: quick, but the flux of a source at (l, m) of a field L wide is
          ///< lower by about sinc(l/L) sinc(m/L), 6 % at 0.19 L and 36 % at an edge
};

/// Options of a DirtyImager.
struct DirtyImagerOptions {
  /// Samples, or averages of cells.
  TORCH_ARG(Imaging, imaging) = Imaging::exact;
  /// What density weights are of.
  TORCH_ARG(Weighting, weighting) = Weighting::briggs;
  /// Briggs robustness R, -2 (nearly uniform) to 2 (nearly natural).
  TORCH_ARG(double, robust) = 0.5;
  /// Additional weight T(u, v) of every sample; none when empty. `gaussian_taper` makes the usual one.
  TORCH_ARG(Taper, taper) = nullptr;
  /// Unit of image() and noise(); beams have a peak of 1 in either.
  TORCH_ARG(ImageUnit, unit) = ImageUnit::jy_per_beam;
  /// Which data channels feed which image channel; empty: image channel c <- data channel c.
  TORCH_ARG(std::optional<ChannelMap>, channel_map) = std::nullopt;
  /// Working storage of exact images, bytes; by default what is promised below. Where an image needs more, it is made in
  /// parts with a pass over the data each.
  TORCH_ARG(std::optional<std::int64_t>, working_bytes) = std::nullopt;
  /// Error of exact images, relative to their norm.
  TORCH_ARG(double, tolerance) = 1e-12;
};

/// Other visibilities at the samples of the data: (data channel, begin, end) -> (end - begin) complex, Jy.
using VisibilityBlocks = std::function<Tensor(std::int64_t channel, std::int64_t begin, std::int64_t end)>;

/// Samples [begin, begin + n) of a data channel beside a model of them, (n) complex128, Jy.
struct ComparedSamples {
  std::int64_t channel, begin;     ///< of the data; of the samples in it
  const VisibilityBlock& samples;  ///< u, v, data and weights
  const Tensor& model;             ///< what the model has there
};

/// Adds what others, who have other samples of the same image, have made of theirs to an image, (npix, npix) float64.
using ImageSum = std::function<void(Tensor& image)>;

/// Dirty images of data and of data minus model, in Jy/beam.
struct ComparedImages {
  Tensor image, residual;  ///< (nchan, npix, npix) float64
};

/// Dirty images and beams of loose or gridded visibilities, always with the Hermitian partner of every sample:
///
///   image(l, m) = C sum_k T_k D_k w_k V_k exp(2 pi i (u_k l + v_k m)),   C = 1 / sum_k T_k D_k w_k
///
/// with u, v of the samples, or rounded to cell centres (Imaging); the beam is the image of V = 1 and peaks at 1. D
/// depends on the cell, T on the sample, so that C and the noise are the same for both. Only occupied cells are kept,
/// samples are transformed in blocks, and channels are imaged one by one, each with its own beam, so that memory above the
/// data, the cells and the images stays within 64 MiB + 10 % of the data. Results are float64 on the CPU.
/// Source: Briggs, Schwab & Sramek 1999; robustness as in CASA's tclean.
class DirtyImager {
 public:
  /// Grids the visibilities: one pass over the data, two with a taper. Exact images share the storage of the visibilities.
  /// @throws DataError when a baseline lies outside the grid; ValueError for robust outside [-2, 2] or a channel map
  ///         that names channels that are not there
  DirtyImager(const GridCoords& coords, const Visibilities& visibilities, DirtyImagerOptions options = {});

  /// Takes data that are gridded already (without Hermitian pairs), whose images are those of cells whatever the options say; a
  /// taper is evaluated at the cell centres.
  /// @throws ValueError when a channel map is given
  explicit DirtyImager(const GriddedDataset& dataset, DirtyImagerOptions options = {});

  /// Exact images of visibilities whose cell averages, by the same channel map, are there already: without a pass over the data,
  /// unless there is a taper.
  /// @throws ValueError for a channel map that names channels that are not there, or has other image channels than the averages
  DirtyImager(const GriddedDataset& averages, const Visibilities& visibilities, DirtyImagerOptions options = {});

  const GridCoords& coords() const { return coords_; }  ///< the grid of the images
  std::int64_t nchan() const { return nchan_; }         ///< image channels
  /// What the images are made of.
  Imaging imaging() const { return samples_ ? Imaging::exact : Imaging::cells; }
  /// Occupied cells, (ncells) int64, flat index into the packed (nchan, npix, npix) cube, increasing: the cells of
  /// `DataAverager(coords, visibilities).to_dataset()`.
  const Tensor& cells() const { return cells_; }
  /// Scatter of loose visibilities in their cells (see DataAverager); none of gridded or tapered ones.
  const std::optional<Scatter>& scatter() const { return scatter_; }

  /// Dirty image of the data, (nchan, npix, npix) sky, in the unit of the options.
  Tensor image() const;
  /// Dirty image of other visibilities with the weights of these data; linear, so that the image of data minus model is the
  /// residual image.
  /// @param visibilities  complex, Jy: of exact images (data channels, nvis), of cells (ncells) in the order of `cells()`
  /// @throws ShapeError otherwise
  Tensor image_of(const Tensor& visibilities) const;
  /// The same of visibilities that are never there all at once. Blocks are asked for in the order of the image channels, their
  /// data channels and the samples, once for each part of the image that working storage allows.
  /// @throws ValueError for images of cells; ShapeError for a block of another shape
  Tensor image_of(const VisibilityBlocks& visibilities) const;
  /// The dirty image and that of data minus a model, with the shapes of the beams, of which other functions tell: in one pass
  /// over the data where working storage holds four grids, in two or three where it does not. It takes two grids at least, of 32
  /// bytes a pixel, whatever the storage.
  /// @param sky  model image (nchan, npix, npix) Jy/arcsec^2, float64 on the CPU
  /// @param use  called with one block of samples after the other, each once
  /// @param sum  called with the images and the beam of each channel, before the beam is measured, where others have a share of
  ///             the samples: this imager is of their cell averages then, and its own samples
  /// @throws ValueError for images of cells; ShapeError for another image
  ComparedImages compare(const Tensor& sky, const std::function<void(const ComparedSamples&)>& use,
                         const ImageSum& sum = nullptr) const;
  /// Dirty beam, (nchan, npix, npix) sky, peak 1 at column npix/2 - 1, row npix/2.
  Tensor beam() const;

  /// C of each channel, (nchan), Jy^2 (natural, Briggs) or 1 (uniform).
  Tensor normalization() const;
  /// Standard deviation of the thermal noise in the image that the weights promise, (nchan), in the unit of the
  /// options: sqrt(sum T^2 D^2 w) / sum T D w.
  Tensor noise() const;
  /// Area of the dirty beam within its first null, (nchan), arcsec^2 (see BeamShape).
  Tensor beam_area() const;
  /// Largest |beam| outside the first null, (nchan).
  Tensor peak_sidelobe() const;
  /// Gaussian fitted to the main lobe of each channel; none where the lobe is no ellipse within the image.
  std::vector<std::optional<Beam>> fitted_beam() const;

 private:
  struct Cache;

  struct Samples;

  struct SampleWeights;

  DirtyImager(const GridCoords& coords, std::int64_t nchan, DirtyImagerOptions options);
  void sum_cells(const Visibilities& visibilities, const ChannelMap& map);
  void take_averages(const GriddedDataset& averages);
  void keep_samples(const Visibilities& visibilities, const ChannelMap& map);
  void weigh(const Tensor& cell_weights, const Tensor& tapered, const Tensor& tapered_twice);
  /// Images of all channels, each made by make_image(channel, storage) into (sky_image_storage) doubles.
  Tensor make_images(const std::function<void(std::int64_t channel, const Tensor& storage)>& make_image) const;
  /// Visibilities in cells, V = 1 where undefined; times C and `scale`.
  void make_image_of_cells(std::int64_t channel, const Tensor& visibilities, double scale, const Tensor& storage) const;
  void make_image_of_samples(std::int64_t channel, const VisibilityBlocks& visibilities, double scale,
                             const Tensor& storage) const;
  void make_beam(std::int64_t channel, const Tensor& storage) const;
  const std::vector<std::int64_t>& sources_of(std::int64_t channel) const;
  /// What turns an image in Jy/beam into the unit of the options.
  double unit_factor(std::int64_t channel) const;
  std::pair<std::int64_t, std::int64_t> cells_of(std::int64_t channel) const;
  const std::vector<BeamShape>& shapes() const;

  GridCoords coords_;
  std::int64_t nchan_;
  DirtyImagerOptions options_;
  std::vector<std::int64_t> first_cell_;    // (nchan + 1): where the cells of a channel begin
  Tensor cells_;                            // (ncells) int64
  std::shared_ptr<const Samples> samples_;  // of exact images
  Tensor density_;                          // (ncells) float64, D; none for natural weighting of samples
  Tensor visibilities_;                     // of cells: (ncells) complex128, averages with weights T w
  Tensor imaging_weights_;                  // of cells: (ncells) float64, D sum T w
  Tensor normalization_, noise_;            // (nchan) float64; the noise in Jy/beam
  std::optional<Scatter> scatter_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace mpol

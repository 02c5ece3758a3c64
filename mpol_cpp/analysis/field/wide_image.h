#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// A dirty image of few pixels over a wide field, naturally weighted, for a look at where there is flux at all.
struct WideMap {
  GridCoords coords = GridCoords(1, 2);  ///< pixels of the image
  Tensor image;                          ///< (npix, npix) float64, sky orientation, Jy/beam
  Tensor beam;       ///< (npix, npix) float64, packed: 1 at [0][0]; the image is the sky convolved with it periodically
  double noise = 0;  ///< that the weights promise, Jy/beam; 0 without samples
  /// By how much more samples of one uv cell scatter than their weights say; nothing where few cells have several. Too much where
  /// bright sources lie far off the phase centre, whose phases go round within a cell.
  std::optional<double> scatter = {};
};

/// Sums for such an image, to which samples are added in blocks. Samples beyond what its pixels can show are passed over, and
/// the others go to the middle of their cell, so that flux at an edge is lower by about a third: this finds, it does not measure.
class WideImage {
 public:
  explicit WideImage(const GridCoords& coords);  ///< @param coords  grid of the image, whose uv cells hold the sums

  /// @param u, v     (n) float64, wavelengths
  /// @param data     (n) complex128, Jy
  /// @param weights  (n) float64, Jy^-2
  void add(const Tensor& u, const Tensor& v, const Tensor& data, const Tensor& weights);

  /// Calls visit(numbers, count) with all sums, to which those of other samples on the same grid may be added.
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    visit(&cells_.front().weight, cells_.size() * sizeof(Cell) / sizeof(double));
    for (double* sum : {&total_, &power_, &samples_}) visit(sum, std::size_t{1});
  }

  WideMap map() const;  ///< the image of the samples so far

 private:
  /// Sums of weights, and of weights times data.
  struct Cell {
    double weight = 0, real = 0, imag = 0;
  };

  std::optional<double> scatter() const;

  GridCoords coords_;
  std::vector<Cell> cells_;                     // packed
  double total_ = 0, power_ = 0, samples_ = 0;  // sum w, sum w |V|^2, how many
};

/// The sums of all channels of an observation.
WideImage wide_image(const GridCoords& coords, const Visibilities& visibilities);
/// The image of all channels of an observation.
WideMap wide_map(const GridCoords& coords, const Visibilities& visibilities);

/// How far a short CLEAN of a map goes.
struct ShortClean {
  static constexpr std::int64_t most_components = 500;  ///< after which it ends
  static constexpr double loop_gain = 0.3;              ///< share of a peak that a component is
  static constexpr double part_of_peak = 0.02;          ///< of the map's peak, below which nothing is looked at
  static constexpr double noise_levels = 5;             ///< times the noise, likewise
};

/// What the median of |image| says of Gaussian noise in it, in its unit.
double median_noise(const Tensor& image);

/// The largest |offset| along either axis, arcsec, of what a short CLEAN finds above five times the noise and 2 % of the peak;
/// the noise is what the weights promise, or what the map's median says where that is more. 0 where there is nothing.
double extent_of_flux(const WideMap& map);

/// The square around all that is found so, arcsec from the phase centre; half a pixel of the map wider on each side. All 0 where
/// there is nothing.
struct FluxSquare {
  double east = 0, north = 0;  ///< its centre
  double half_width = 0;       ///< along both axes
};

/// The square around what extent_of_flux() takes for flux.
FluxSquare square_of_flux(const WideMap& map);

/// The brightest place of a map.
struct WidePeak {
  double east = 0, north = 0;  ///< arcsec from the phase centre
  double value = 0;            ///< Jy/beam, with its sign
};

/// That outside of the square |offset| < half_width (arcsec); value 0 where nothing lies outside.
WidePeak peak_outside(const WideMap& map, double half_width);

}  // namespace mpol

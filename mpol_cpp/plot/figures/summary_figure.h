#pragma once

#include <optional>
#include <string>
#include <vector>

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

/// Whether the mean of |V|^2 keeps what noise adds to it, 2/w per sample: subtract it from data, keep it for models.
enum class NoiseBias {
  keep,     ///< for models, which have no noise
  subtract  ///< for data; what is left is 0 at least
};

/// Visibilities averaged in rings of equal width in q: what a summary shows as amplitude against baseline length.
struct AmplitudeBins {
  std::vector<double> q;          ///< mean baseline length, wavelengths
  std::vector<double> amplitude;  ///< root of the weighted mean of |V|^2, Jy
};

/// Sums over the samples in each ring, which may be added in blocks.
class AmplitudeSums {
 public:
  /// @param longest  no baseline is longer, wavelengths
  /// @param bins     number of rings from 0 to the longest; empty rings are left out  @throws ValueError unless >= 1
  explicit AmplitudeSums(double longest, std::int64_t bins = 60);

  /// @param q             (n) baseline lengths, wavelengths
  /// @param visibilities  (n) complex, Jy
  /// @param weights       (n) > 0
  /// @throws ShapeError when the shapes differ
  void add(const Tensor& q, const Tensor& visibilities, const Tensor& weights);

  /// Averages of what was added so far, without empty rings.
  AmplitudeBins bins(NoiseBias noise_bias) const;

 private:
  struct Ring {
    double weight = 0, power = 0, q = 0, count = 0;
  };
  double width_;
  std::vector<Ring> rings_;
};

/// Those of all samples at once, in rings up to the largest q.
/// @param q             (n) baseline lengths, wavelengths
/// @param visibilities  (n) complex, Jy
/// @param weights       (n) > 0
/// @param bins          number of rings from 0 to the largest q; empty rings are left out
/// @throws ShapeError when the shapes differ
AmplitudeBins binned_amplitudes(const Tensor& q, const Tensor& visibilities, const Tensor& weights, NoiseBias noise_bias,
                                std::int64_t bins = 60);

/// The page of a run. Of a cube it shows the middle channel, and says so in the titles.
/// @throws ShapeError when an image does not fit the grid
Page summary_page(const SummaryFigure& summary);

}  // namespace mpol::plot

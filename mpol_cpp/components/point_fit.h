#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/components/point_component.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {

/// Makes images of data beside point sources, one after the other: each may begin where the last one ended.
class PointImager {
 public:
  /// Makes the likelihood of an image beside the sources, of that of an image alone.
  using Beside = std::function<std::shared_ptr<Likelihood>(std::shared_ptr<Likelihood>)>;
  virtual ~PointImager() = default;
  /// The image that fits the data, less the sources as they are, by the likelihood that `beside` makes of its own:
  /// (nchan, npix, npix), Jy/arcsec^2, float64 on the CPU; undefined where the fit was interrupted.
  virtual Tensor image_of(const Visibilities& rest, const Beside& beside) = 0;
  /// What the next image begins from, to the last bit, for a fit that is to be resumed.
  virtual NamedTensors state() const = 0;
  /// Takes up such a state. @throws FileError when names or shapes do not match
  virtual void load_state(const NamedTensors& state) = 0;
};

/// What a round came to.
struct PointRound {
  std::int64_t round = 0;                      ///< from 1
  const std::vector<PointComponent>& sources;  ///< as this round's image has them
  double change = 0;                           ///< of the flux or place that changed most, in its error
  bool has_found = false;                      ///< whether the last of them was found in this round
};

/// Options of fit_points.
struct PointFitOptions {
  /// Whether sources are looked for: where the image is as sharp as it can be (is_at_its_sharpest), and the residual image stands
  /// (Briggs weighting with robust 0.5) stands out by `clear_peak` times the noise that the weights promise. A source is kept
  /// where chi^2 falls by more than the square of that.
  TORCH_ARG(bool, searches) = false;
  /// What a source that is looked for must exceed, in noise of the residual image.
  TORCH_ARG(double, clear_peak) = 5;
  /// Sources at most, where they are looked for.
  TORCH_ARG(std::int64_t, most_sources) = 16;
  /// Rounds of an image and its sources, at most; > 0.
  TORCH_ARG(std::int64_t, rounds) = 100;
  /// It has converged when no flux and no place changes by more than this part of its error from one round to the next, > 0.
  TORCH_ARG(double, tolerance) = 0.1;
  /// After each round.
  TORCH_ARG(std::function<void(const PointRound&)>, on_round) = {};
  /// Where the state is kept after each round, so that a fit that was interrupted goes on from there; empty: nowhere.
  TORCH_ARG(std::filesystem::path, state) = {};
  /// Stored there and compared, "key = value". A state of something else is not taken up.
  TORCH_ARG(std::vector<std::string>, fingerprint) = {};
  /// Where the data without the sources of each round are kept.
  TORCH_ARG(ArrayRoom, room) = {};
};

/// What a fit found.
struct PointFit {
  std::vector<PointComponent> sources;  ///< those that were given, and those that were found
  std::int64_t rounds = 0;              ///< taken in all
  double change = 0;                    ///< in the last one, of the flux or place that changed most, in its error
  bool converged = false;               ///< within the tolerance
  bool interrupted = false;             ///< nothing is final
};

/// Fits an image and point sources together. In each round the image is fitted to the data less the sources as they are, by the
/// likelihood in which their fluxes and a small shift of each are what suits every image best (PointLikelihood), so that both are
/// at their joint optimum for those places; then the sources take what that image leaves them, and move. An image of pixels
/// has a kernel, and what is sharper than that, or lies between them, leaves part of itself on the longest baselines; priors make
/// it cheaper still for the source to be in no pixel.
/// Errors of fluxes are those of the weights beside an image that is known, and with them, as either may have part of the other,
/// what the image has around the source (the mean of the 24 pixels three away) in the area of its sharpest spot, nine pixels.
/// Those of places are as many radians of phase as errors of fluxes are of the flux.
/// @param start  places where sources are, arcsec; their fluxes may be left out
/// @throws ValueError for options out of range, or sources that cannot be told apart; whatever the imager throws
PointFit fit_points(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                    std::vector<PointComponent> start, PointImager& imager, const PointFitOptions& options);

}  // namespace mpol

#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/distributed/channel_neighbors.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol {

/// What a regulariser sees of a model: the base pixels, the sky cube and, computed when first asked for, the
/// visibilities.
class ModelOutput {
 public:
  /// The output of a model in its present state; `base_cube` is undefined for one without base pixels, `of_either_sign` for one
  /// without ImageModel::signed_pixels().
  ModelOutput(GridCoords coords, Tensor base_cube, Tensor sky_cube, Tensor of_either_sign = {})
      : base(std::move(base_cube)), sky(std::move(sky_cube)), signed_pixels(std::move(of_either_sign)), coords_(coords) {}

  Tensor base;           ///< (…, nchan, npix, npix), or undefined
  Tensor sky;            ///< (…, nchan, npix, npix), Jy/arcsec^2, sky orientation
  Tensor signed_pixels;  ///< like the sky, ImageModel::signed_pixels(); or undefined

  /// Packed model visibilities (…, nchan, npix, npix), Jy.
  const Tensor& visibilities() const;
  const GridCoords& coords() const { return coords_; }  ///< the model's grid

 private:
  GridCoords coords_;
  mutable Tensor visibilities_;
};

/// A regulariser with its weight: lambda times a differentiable function of the model's output, one value per problem.
class Term {
 public:
  /// What computes a term, unweighted.
  using Function = std::function<Tensor(const ModelOutput&)>;

  /// @param name      of the column in reports: letters, digits and _; "total" and "nll" are taken
  /// @param weight    lambda, finite and >= 0, of every problem unless with_weights gives each its own
  /// @param function  gives one value per problem, (…), on the output's device
  /// @throws ValueError otherwise
  Term(std::string name, double weight, Function function);

  /// The same term with a weight for each problem of a batch, in the order of its leading dimensions.
  /// @throws ValueError unless there is one at least, and all are finite and >= 0
  Term with_weights(std::vector<double> weights) const;
  /// The same term of a cube with a weight for each channel: the value of each counts so many times. For channels of other noise,
  /// or sources of other brightness, in one objective.
  /// @throws ValueError for a term that joins channels or is not the library's own, for none, and unless all are finite and >= 0
  Term with_channel_factors(std::vector<double> factors) const;

  const std::string& name() const { return name_; }  ///< of its column in reports
  /// One for all problems, or one for each.
  const std::vector<double>& weights() const { return weights_; }
  /// Its weight in one problem.
  double weight(std::size_t problem) const { return weights_.size() == 1 ? weights_.front() : weights_.at(problem); }
  /// What each channel's value counts; empty: 1.
  const std::vector<double>& channel_factors() const { return channel_factors_; }
  /// Its weight in one channel of a problem.
  double weight(std::size_t problem, std::size_t channel) const {
    return weight(problem) * (channel_factors_.empty() ? 1 : channel_factors_.at(channel));
  }
  /// Whether it has no weight in any problem: it is then not computed.
  bool is_off() const;
  TermKind kind() const { return kind_; }  ///< custom unless it is the library's own
  /// Settings of the library's own terms (epsilon, prior intensity, …), in the order of Regularizer::settings.
  const std::vector<double>& settings() const { return settings_; }
  /// The value without its weights, but for those of channels, (…).
  /// @throws ShapeError where there are channel_factors() for another number of channels
  Tensor evaluate(const ModelOutput& output) const {
    return channel_factors_.empty() ? function_(output) : evaluate_channels(output).sum({-1});
  }
  /// The same of each channel by itself, (…, nchan), of a term that joins none.
  /// @throws ShapeError where there are channel_factors() for another number of channels
  Tensor evaluate_channels(const ModelOutput& output) const;

  /// Whether it looks at several channels at once; of a function of the user's own that is not known.
  bool joins_channels() const { return kind_ != TermKind::custom && regularizer_of(kind_).joins_channels; }
  /// The same term of cubes whose other channels are on other ranks: its values are this rank's parts of the sum, and its slopes
  /// are right for this rank's channels; all ranks evaluate it together. One that joins no channels as it is.
  Term over(const std::shared_ptr<ChannelNeighbors>& neighbors) const;

  /// One of the library's own (namespace terms), with its first settings and the usual ones for the rest.
  static Term known(TermKind kind, double weight, std::vector<double> settings = {});

 private:
  std::string name_;
  std::vector<double> weights_, channel_factors_;
  Function function_;
  TermKind kind_ = TermKind::custom;
  std::vector<double> settings_;
};

/// Whether two terms have the same weights, of problems and of channels.
inline bool weigh_alike(const Term& a, const Term& b) {
  return a.weights() == b.weights() && a.channel_factors() == b.channel_factors();
}

/// The library's regularizers as terms, one function of each name of regularizers/list.h: terms::tsv(weight),
/// terms::entropy(weight, prior_intensity, total_flux), ... Settings come in the order of the regularizer's descriptor; those
/// left out at the end have its values. Lengths in arcsec, q_max in wavelengths, intensities in Jy/arcsec^2, fluxes in Jy.
/// @throws ValueError for a weight or a setting out of its range, and where one without a usual value is missing
namespace terms {
#define MPOL_EACH(name, Type)                                                       \
  template <std::convertible_to<double>... Settings>                                \
  Term name(double weight, Settings... settings) {                                  \
    return Term::known(TermKind::name, weight, {static_cast<double>(settings)...}); \
  }
MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
}  // namespace terms

}  // namespace mpol

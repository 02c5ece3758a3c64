#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

/// What a regulariser sees of a model: the base pixels, the sky cube and, computed when first asked for, the
/// visibilities.
class ModelOutput {
 public:
  /// What a model made: base pixels, undefined where it has none, and the image.
  ModelOutput(GridCoords coords, Tensor base_cube, Tensor sky_cube)
      : base(std::move(base_cube)), sky(std::move(sky_cube)), coords_(coords) {}

  Tensor base;  ///< (…, nchan, npix, npix), or undefined
  Tensor sky;   ///< (…, nchan, npix, npix), Jy/arcsec^2, sky orientation

  /// Packed model visibilities (…, nchan, npix, npix), Jy.
  const Tensor& visibilities() const;
  const GridCoords& coords() const { return coords_; }  ///< the grid of both

 private:
  GridCoords coords_;
  mutable Tensor visibilities_;
};

/// The library's own regularisers, which a fused step knows; `custom` is anything else.
enum class TermKind {
  custom,      ///< any other function
  sparsity,    ///< losses::sparsity
  tv_image,    ///< losses::tv_image
  tsv,         ///< losses::tsv
  tv_channel,  ///< losses::tv_channel
  entropy,     ///< losses::entropy
  edge_clamp,  ///< losses::edge_clamp
  psd,         ///< losses::psd
  uv_sparsity  ///< losses::uv_sparsity
};

/// A regulariser with its weight: lambda times a differentiable function of the model's output, one value per problem.
class Term {
 public:
  /// The regulariser: one value per problem, (…), differentiable.
  using Function = std::function<Tensor(const ModelOutput&)>;

  /// @param name      of the column in reports: letters, digits and _; "total" and "nll" are taken
  /// @param weight    lambda, finite and >= 0, of every problem unless with_weights gives each its own
  /// @param function  gives one value per problem, (…), on the output's device
  /// @throws ValueError otherwise
  Term(std::string name, double weight, Function function);

  /// The same term with a weight for each problem of a batch, in the order of its leading dimensions.
  /// @throws ValueError unless there is one at least, and all are finite and >= 0
  Term with_weights(std::vector<double> weights) const;

  const std::string& name() const { return name_; }  ///< of its column in reports
  /// One for all problems, or one for each.
  const std::vector<double>& weights() const { return weights_; }
  /// Lambda of one problem of a batch, from 0.
  double weight(std::size_t problem) const { return weights_.size() == 1 ? weights_.front() : weights_.at(problem); }
  /// Whether it has no weight in any problem: it is then not computed.
  bool is_off() const;
  TermKind kind() const { return kind_; }  ///< custom unless it is the library's own
  /// Settings of the library's own terms that a fused step needs (epsilon, prior intensity, …), in a fixed order.
  const std::vector<double>& settings() const { return settings_; }
  /// The unweighted value, (…).
  Tensor evaluate(const ModelOutput& output) const { return function_(output); }

  /// A term of the library's own: kind and settings tell fused steps what the function computes.
  static Term known(TermKind kind, std::string name, double weight, std::vector<double> settings, Function function);

 private:
  std::string name_;
  std::vector<double> weights_;
  Function function_;
  TermKind kind_ = TermKind::custom;
  std::vector<double> settings_;
};

/// The library's regularisers as terms (formulas: regularizers/). Lengths in arcsec, q_max in wavelengths, intensities in
/// Jy/arcsec^2, fluxes in Jy.
namespace terms {
Term sparsity(double weight);                            ///< sum |I|
Term tv_image(double weight, double epsilon = 1e-10);    ///< total variation of each channel image
Term tv_channel(double weight, double epsilon = 1e-10);  ///< total variation between neighbouring channels
Term tsv(double weight);                                 ///< total squared variation
/// Entropy of the image against a flat prior.
Term entropy(double weight, double prior_intensity = 1e-4, double total_flux = 10.0);
Term edge_clamp(double weight);                 ///< keeps flux off the border
Term psd(double weight, double length_scale);   ///< power spectrum of a Gaussian random field of that length
Term uv_sparsity(double weight, double q_max);  ///< sparsity of the uv cells beyond q_max
}  // namespace terms

}  // namespace mpol

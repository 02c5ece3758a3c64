#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol {

/// What chi^2 of so many complex visibilities stays below in 97.7 % of all cases, when the model is right and the weights are:
/// with n = 2 visibilities real numbers of unit variance, n + 2 sqrt(2 n), the mean and two standard deviations. Its root is
/// noise_radius(n). @throws ValueError unless there are any
/// Source: Carrillo, McEwen & Wiaux 2012.
double chi_squared_bound(std::int64_t visibilities);

/// A fit on the way to a bound.
struct BoundedFitPoint {
  double factor = 1;        ///< of all weights
  double chi_squared = 0;   ///< of the image that they gave
  std::int64_t epochs = 0;  ///< that it took
};

/// Options of fit_within().
struct BoundedFitOptions {
  BoundedFitOptions() { train_.optimizer(OptimizerKind::pogm).tolerance(1e-4).epochs(20'000); }

  /// How far chi^2 may be from the bound at the end, as a part of it; > 0.
  TORCH_ARG(double, tolerance) = 2e-4;
  /// After which the search ends where it is, >= 1.
  TORCH_ARG(std::int64_t, most_fits) = 50;
  /// What chi^2 is divided by, which says what weights of 1 are.
  TORCH_ARG(Normalize, normalize) = Normalize::cells;
  /// How each fit is made: by pogm or fista, to a tolerance. Callbacks and checkpoints are not looked at.
  TORCH_ARG(TrainOptions, train) = {};
  /// Told of each fit; empty: nobody is.
  TORCH_ARG(std::function<void(const BoundedFitPoint&)>, on_fit) = {};
};

/// How fit_within() ended.
struct BoundedFit {
  double factor = 1;                    ///< of all weights: those of the last fit
  double bound = 0, chi_squared = 0;    ///< of the last fit
  bool is_met = false;                  ///< whether they are within the tolerance of each other
  bool interrupted = false;             ///< by TrainOptions::interrupted
  std::vector<BoundedFitPoint> points;  ///< in the order in which they were fitted
};

/// The image that is simplest of all that fit the data as well as their noise allows,
///
///   min_z  sum_i lambda_i R_i(x)   where   chi^2(x) <= B,  z >= 0
///
/// with x the model's image of its base pixels z. The Lagrangian of the constraint is the objective chi^2/(2 N_norm) +
/// s sum_i lambda_i R_i with s = 1/(2 N_norm m), m the multiplier: its minimum, at the s for which chi^2 = B, is that of the
/// constrained problem (Karush, Kuhn and Tucker), as both are convex. chi^2 at the minimum does not fall as s rises, so that s is
/// found by a bracket and the rule of false position (Illinois) in ln s, each fit from the image of the last one.
///
/// The model ends with the image of the last fit.
/// @param terms  whose weights are taken relative to each other; one of them must have one
/// @throws ValueError for a bound that is not above 0, without weights, for options out of range, for several problems and for
/// what is not convex (ConvexObjective); DataError where no image reaches the bound, and where one without any light does
/// Source: Carrillo, McEwen & Wiaux 2012 (the problem).
BoundedFit fit_within(const std::shared_ptr<ImageModel>& model, const std::shared_ptr<Likelihood>& likelihood,
                      const std::vector<Term>& terms, double bound, const BoundedFitOptions& options = {});
/// The same of holders.
template <HolderOf<ImageModel> Model, HolderOf<Likelihood> Data>
BoundedFit fit_within(const Model& model, const Data& likelihood, const std::vector<Term>& terms, double bound,
                      const BoundedFitOptions& options = {}) {
  return fit_within(std::shared_ptr<ImageModel>(model.ptr()), std::shared_ptr<Likelihood>(likelihood.ptr()), terms, bound,
                    options);
}

}  // namespace mpol

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/term.h>

namespace mpol {

/// What an objective divides chi^2 by: 2 N_norm.
enum class Normalize {
  cells,         ///< N_norm = occupied cells of the likelihood's grid (the same lambda for every likelihood)
  visibilities,  ///< N_norm = loose visibilities
  none,          ///< N_norm = 1/2: chi^2 itself
};
std::string to_string(Normalize normalize);  ///< "cells", "visibilities" or "none"

/// The terms of an objective at one image, one float64 value per problem, differentiable.
struct ObjectiveValue {
  Tensor total;               ///< (…): nll + sum of the weighted terms
  Tensor nll;                 ///< (…): chi^2 / (2 N_norm)
  std::vector<Tensor> terms;  ///< weighted, in the objective's order

  /// All of them detached, (columns, problems), in the order of Objective::columns().
  Tensor table() const;
};

/// A likelihood and weighted regularisers: total = chi^2 / (2 N_norm) + sum_i lambda_i R_i.
class Objective {
 public:
  /// @param likelihood  a holder, a pointer to its module, or what clone() of that gives
  /// @throws ValueError when two terms share a name, or when the likelihood has nothing to normalise by
  template <HolderOf<Likelihood> Holder>
  Objective(const Holder& likelihood, std::vector<Term> terms = {}, Normalize normalize = Normalize::cells)
      : Objective(std::shared_ptr<Likelihood>(likelihood.ptr()), std::move(terms), normalize) {}
  /// The same of a pointer to a class that is known to be a Likelihood.
  template <std::derived_from<Likelihood> Own>
  Objective(const std::shared_ptr<Own>& likelihood, std::vector<Term> terms = {}, Normalize normalize = Normalize::cells)
      : Objective(std::shared_ptr<Likelihood>(likelihood), std::move(terms), normalize) {}
  /// The same of what clone() gives. @throws ValueError also where it is no Likelihood
  Objective(const std::shared_ptr<torch::nn::Module>& likelihood, std::vector<Term> terms = {},
            Normalize normalize = Normalize::cells)
      : Objective(with_interface<Likelihood>(likelihood, "Likelihood"), std::move(terms), normalize) {}
  /// The same of the interface.
  Objective(std::shared_ptr<Likelihood> likelihood, std::vector<Term> terms = {}, Normalize normalize = Normalize::cells);

  /// The same with another N_norm: of a likelihood that holds a part of the data. @throws ValueError unless it is > 0
  Objective divided_by(double normalizer) const;

  /// The same for ranks that hold the channels of one cube, of which this likelihood and the model have this rank's: terms that
  /// join channels look at those of the neighbors, and all ranks evaluate together. As it is where no term with a weight joins
  /// channels, and where it is over ranks already.
  Objective over(const std::shared_ptr<Communicator>& ranks) const;
  /// Who has the other channels; null where no term looks at them.
  const std::shared_ptr<ChannelNeighbors>& neighbors() const { return neighbors_; }

  /// Terms of weight 0 are not computed.
  /// @throws ShapeError when the likelihood or a term does not give one value per problem; ValueError for another grid
  ObjectiveValue evaluate(const ModelOutput& output) const;
  /// At a model's present image.
  ObjectiveValue evaluate(ImageModel& model) const;
  /// The same of a model's holder.
  template <HolderOf<ImageModel> Holder>
  ObjectiveValue evaluate(const Holder& model) const {
    return evaluate(static_cast<ImageModel&>(*model.ptr()));
  }

  /// @throws ValueError naming both grids unless this one, of a model, is the likelihood's
  void check_grid(const GridCoords& coords) const;

  Likelihood& likelihood() const { return *likelihood_; }                               ///< as given
  const std::shared_ptr<Likelihood>& shared_likelihood() const { return likelihood_; }  ///< the same, to be kept
  const std::vector<Term>& terms() const { return terms_; }  ///< as given, those of weight 0 among them
  Normalize normalize() const { return normalize_; }         ///< what chi^2 is divided by
  /// N_norm, or what divided_by() was given: one for all problems, or one for each where they have data of their own.
  std::vector<double> normalizers() const;
  /// The one of all problems. @throws ValueError where they have their own
  double normalizer() const;

  /// chi^2 / (2 N_norm) as float64. @param chi_squared  one value per problem, (…), or as many for each, (…, nchan)
  Tensor nll(const Tensor& chi_squared) const;
  /// Makes a gradient of chi^2 that of chi^2 / (2 N_norm), in place. @param gradient  (…, nchan, npix, npix)
  void normalize_gradient(Tensor& gradient) const;

  /// "total", "nll", then the names of the terms: the columns of every report.
  std::vector<std::string> columns() const;

 private:
  std::shared_ptr<Likelihood> likelihood_;
  std::vector<Term> terms_;
  Normalize normalize_;
  std::optional<double> given_normalizer_;
  std::shared_ptr<ChannelNeighbors> neighbors_;
};

}  // namespace mpol

#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <mpol_cpp/crossval/fold_data.h>
#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/train/trainer.h>

namespace mpol::detail {

/// Fits the model of a fold, again and again at other weights, each time from the parameters that it has. By POGM without what
/// a fit by the Trainer takes besides its steps (a certificate, a trail of images, an estimate of the curvature each time):
/// held-out data tell images apart long before pixels stand still.
class FoldFit {
 public:
  struct End {
    std::int64_t epochs;
    StopReason reason;
  };

  FoldFit(std::shared_ptr<ImageModel> model, std::shared_ptr<Likelihood> likelihood, Normalize normalize, TrainOptions options);

  End fit(const std::vector<Term>& terms) { return fit_problems(terms).front(); }
  /// The same of a model of several problems. @return the end of each
  std::vector<End> fit_problems(const std::vector<Term>& terms);

  ImageModel& model() const { return *model_; }
  const std::shared_ptr<ImageModel>& shared_model() const { return model_; }            ///< the same, to be kept
  const std::shared_ptr<Likelihood>& shared_likelihood() const { return likelihood_; }  ///< what it is fitted to
  std::vector<Tensor> parameters() const;                                               ///< copies
  void set_parameters(const std::vector<Tensor>& values);
  /// What fits by POGM found out for the next ones; empty before the first.
  const std::vector<double>& curvatures() const { return curvatures_; }
  void set_curvatures(std::vector<double> curvatures) { curvatures_ = std::move(curvatures); }

 private:
  std::vector<End> fit_convex(const Objective& objective);

  std::shared_ptr<ImageModel> model_;
  std::shared_ptr<Likelihood> likelihood_;
  NamedTensors first_state_;  // of the likelihood: each fit begins with it
  Normalize normalize_;
  TrainOptions options_;
  std::vector<double> curvatures_;  // of the last fit by POGM
};

}  // namespace mpol::detail

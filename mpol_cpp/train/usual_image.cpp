#include <mpol_cpp/train/usual_image.h>

#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/trainer.h>

namespace mpol {

Tensor usual_image(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                   const UsualImageOptions& options) {
  const auto likelihood = ExactLikelihood(coords, visibilities, channels).ptr();
  const double unit = noise_unit(coords, visibilities, channels.nchan(), likelihood->normalizer()).slope;
  GriddedNet model(GriddedNetOptions(coords)
                       .base_cube(auto_start(coords, visibilities, channels))
                       .dtype(options.dtype())
                       .pixel_mapping(nonnegative_mapping()));
  const Objective objective(likelihood, {terms::sparsity(options.sparsity() * unit), terms::tv_image(options.tv() * unit),
                                         terms::tv_slope(options.tv_slope() * unit)});
  Trainer(model, objective,
          TrainOptions().optimizer(OptimizerKind::pogm).tolerance(options.tolerance()).epochs(options.most_epochs()))
      .fit();
  const torch::NoGradGuard no_grad;
  return model->make_sky().detach().to(torch::kCPU, torch::kFloat64);
}

}  // namespace mpol

#include <mpol_cpp/train/usual_image.h>

#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/peak_signal.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/train/trainer.h>

namespace mpol {

Tensor usual_image(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                   const UsualImageOptions& options) {
  const auto likelihood = ExactLikelihood(coords, visibilities, channels).ptr();
  const auto cells =
      DataAverager(coords, visibilities, DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off))
          .to_dataset();
  const double signal = peak_signal_to_noise(cells);
  const auto units = [&](const std::optional<double>& given, TermKind kind) {
    return given ? *given : usual_units(regularizer_of(kind), signal);
  };
  const double unit = noise_unit(coords, visibilities, channels.nchan(), likelihood->normalizer()).slope;
  GriddedNet model(
      GriddedNetOptions(coords).base_cube(auto_start(cells)).dtype(options.dtype()).pixel_mapping(nonnegative_mapping()));
  const Objective objective(likelihood, {terms::sparsity(unit * units(options.sparsity(), TermKind::sparsity)),
                                         terms::tv_image(unit * units(options.tv(), TermKind::tv_image)),
                                         terms::tv_slope(unit * units(options.tv_slope(), TermKind::tv_slope))});
  Trainer(model, objective,
          TrainOptions().optimizer(OptimizerKind::pogm).tolerance(options.tolerance()).epochs(options.most_epochs()))
      .fit();
  const torch::NoGradGuard no_grad;
  return model->make_sky().detach().to(torch::kCPU, torch::kFloat64);
}

}  // namespace mpol

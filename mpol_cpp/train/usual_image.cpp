#include <mpol_cpp/train/usual_image.h>

#include <optional>

#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/peak_signal.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/uncertainty/fit_noise.h>

namespace mpol {

Tensor usual_image(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                   const UsualImageOptions& options) {
  const auto likelihood = ExactLikelihood(coords, visibilities, channels).ptr();
  const auto cells =
      DataAverager(coords, visibilities, DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off))
          .to_dataset();
  const auto peaks = dirty_peaks(cells);
  const auto unit = noise_unit(coords, visibilities, channels.nchan(), likelihood->normalizer());
  const auto weight = [&](const std::optional<double>& given, TermKind kind, double noise, double filled) {
    return unit.slope * (given ? *given : usual_units(regularizer_of(kind), peaks.brightest, noise, filled));
  };
  const auto objective_for = [&](double noise, double filled) {
    return Objective(likelihood, {terms::sparsity(weight(options.sparsity(), TermKind::sparsity, noise, filled)),
                                  terms::tv_image(weight(options.tv(), TermKind::tv_image, noise, filled)),
                                  terms::tv_slope(weight(options.tv_slope(), TermKind::tv_slope, noise, filled))});
  };
  GriddedNet model(
      GriddedNetOptions(coords).base_cube(auto_start(cells)).dtype(options.dtype()).pixel_mapping(nonnegative_mapping()));
  const auto train = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(options.tolerance()).epochs(options.most_epochs());
  const bool follows = !options.sparsity() || !options.tv() || !options.tv_slope();
  double noise_factor = 1, filled = usual_filled;
  for (int fits = 1;; ++fits) {
    const auto objective = objective_for(noise_factor, filled);
    const auto fit = Trainer(model, objective, train).fit();
    if (!follows || fits == most_usual_fits || fit.stop_reason != StopReason::converged) break;
    const double noise_before = noise_factor, filled_before = filled;
    if (fits == 1) {
      const double reduced = fit.loss.nll() * objective.normalizer() / static_cast<double>(likelihood->visibilities_count());
      const auto draws = [&] { return DirtyNoise(coords, visibilities, channels); };
      const auto noise = measure_fit_noise(model.ptr(), objective, unit, reduced, draws);
      if (noise.is_off()) noise_factor = noise.factor();
    }
    const torch::NoGradGuard no_grad;
    const auto sky = model->make_sky();
    if (sky.any().item<bool>()) filled = filled_to_follow(peaks, noise_factor, filled_share(sky, cells, noise_factor), filled);
    if (noise_factor == noise_before && filled == filled_before) break;
  }
  const torch::NoGradGuard no_grad;
  return model->make_sky().detach().to(torch::kCPU, torch::kFloat64);
}

}  // namespace mpol

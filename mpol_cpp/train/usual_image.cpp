#include <mpol_cpp/train/usual_image.h>

#include <array>
#include <optional>

#include <ATen/ops/zeros.h>

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
  const bool either_sign = options.sign().value_or(natural_sign(visibilities.observation().stokes)) == PixelSign::either;
  const auto peaks = either_sign ? dirty_peaks(cells).of_either_sign() : dirty_peaks(cells);
  const auto unit = noise_unit(coords, visibilities, channels.nchan(), likelihood->normalizer());
  const auto weights_for = [&](double noise, double filled) {
    const auto weight = [&](const std::optional<double>& given, TermKind kind) {
      return unit.slope * (given ? *given : usual_units(regularizer_of(kind), peaks.brightest, noise, filled));
    };
    return std::array{weight(options.sparsity(), TermKind::sparsity), weight(options.tv(), TermKind::tv_image),
                      weight(options.tv_slope(), TermKind::tv_slope)};
  };
  const auto start =
      either_sign ? at::zeros({channels.nchan(), coords.npix(), coords.npix()}, torch::kFloat64) : auto_start(cells);
  const auto mapping = either_sign ? either_sign_mapping() : nonnegative_mapping();
  GriddedNet model(GriddedNetOptions(coords).base_cube(start).dtype(options.dtype()).pixel_mapping(mapping));
  const auto train = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(options.tolerance()).epochs(options.most_epochs());
  double noise_factor = 1, filled = usual_filled;
  auto weights = weights_for(noise_factor, filled);
  for (int fits = 1;; ++fits) {
    const auto& [sparsity, tv, tv_slope] = weights;
    const Objective objective(likelihood, {terms::sparsity(sparsity), terms::tv_image(tv), terms::tv_slope(tv_slope)});
    const auto fit = Trainer(model, objective, train).fit();
    const bool follows = !options.sparsity() || !options.tv() || !options.tv_slope();
    if (!follows || fits == most_usual_fits || fit.stop_reason != StopReason::converged) break;
    if (fits == 1) {
      const double reduced = fit.loss.nll() * objective.normalizer() / static_cast<double>(likelihood->visibilities_count());
      const auto draws = [&] { return DirtyNoise(coords, visibilities, channels); };
      const auto noise = measure_fit_noise(model.ptr(), objective, unit, reduced, draws);
      if (noise.is_off()) noise_factor = noise.factor();
    }
    const torch::NoGradGuard no_grad;
    const auto sky = model->make_sky();
    if (sky.any().item<bool>()) filled = filled_to_follow(peaks, noise_factor, filled_share(sky, cells, noise_factor), filled);
    const auto next = weights_for(noise_factor, filled);
    if (next == weights) break;
    weights = next;
  }
  const torch::NoGradGuard no_grad;
  return model->make_sky().detach().to(torch::kCPU, torch::kFloat64);
}

}  // namespace mpol
